"""Programs that differentiate functions of functions: layers, solvers, simulations, likelihoods."""

from .networks import perceptron
from .registry import expression, row

NAMES = {"f": "torch.func", "x": "torch.randn(24, 12)", "v": "torch.randn(12)",
         "w": "torch.randn(12, 12)", "a": "torch.randn(10, 5, 5) + 5 * torch.eye(5)",
         "b": "torch.randn(10, 5)", "s": "torch.randn(6, 2, 9, 9)", "k": "torch.randn(3, 2, 3, 3)",
         "q": "torch.randn(6, 2, 8, 4)", "i": "torch.randint(12, (24, 5))",
         "e": "torch.randn(12, 7)"}  # fmt: skip
for _code in (
    "f.jacrev(f.jacfwd(lambda v: (w @ v).sin() * v))(v)",
    "f.jacfwd(f.jacrev(lambda v: (w @ v).sin() * v))(v)",
    "f.jacrev(lambda v, w: torch.sigmoid(w @ v), (0, 1))(v, w)",
    "f.jacfwd(lambda v: torch.linalg.solve(w + 9 * torch.diag(v), v))(v)",
    "f.jacrev(lambda v: torch.cumsum(F.softplus(v), 0).flip(0))(v)",
    "f.hessian(lambda v: torch.logsumexp(x @ v, 0))(v)",
    "f.hessian(lambda v: F.binary_cross_entropy_with_logits(x @ v, (x[:, 0] > 0).float()))(v)",
    "f.hessian(lambda v: torch.linalg.slogdet(w @ torch.diag(v.exp()) + 9 * torch.eye(12))[1])(v)",
    "torch.vmap(f.hessian(lambda v: (v[1:] * v[:-1]).prod()))(x)",
    "torch.vmap(f.jacrev(lambda v: F.normalize(v, dim=0)))(x)",
    "torch.vmap(f.jacfwd(lambda v: torch.stack([v[0] * v[1].cos(), v[0] * v[1].sin()])))(x)",
    "torch.vmap(f.grad(lambda a, b: torch.linalg.solve(a, b).pow(2).sum()))(a, b)",
    "torch.vmap(f.grad(lambda a: torch.linalg.cholesky(a @ a.mT).diagonal().log().sum()))(a)",
    "torch.vmap(f.grad(lambda a: torch.linalg.inv(a).diagonal().sum()))(a)",
    "torch.vmap(torch.linalg.eigh)(a @ a.mT)",
    "torch.vmap(lambda q: F.scaled_dot_product_attention(q, q, q))(q)",
    "torch.vmap(f.grad(lambda q: F.scaled_dot_product_attention(q, q, q).sum()))(q)",
    "torch.vmap(f.grad(lambda k, s: F.conv2d(s[None], k, stride=2).relu().sum()), (None, 0))(k, s)",
    "torch.vmap(f.grad(lambda s: F.max_pool2d(s, 2).sum() + F.avg_pool2d(s, 3).sum()))(s)",
    "torch.vmap(f.grad(lambda s: F.interpolate(s[None], scale_factor=2).pow(2).sum()))(s)",
    "torch.vmap(f.grad(lambda s: F.group_norm(s[None], 2).pow(3).sum()))(s)",
    "torch.vmap(f.grad(lambda e, i: F.embedding(i, e).sum(0).pow(2).sum()), (None, 0))(e, i)",
    "torch.vmap(f.grad(lambda v, i: v.index_select(0, i).cumprod(0).sum()))(x, i)",
    "torch.vmap(lambda v, i: v.scatter(0, i, v[:5] * 2).sort(descending=True)[0])(x, i)",
    "torch.vmap(lambda v: v.argmax() + v.topk(12).indices)(x)",
    "torch.vmap(lambda v: torch.where(v > 0, v, v.exp() - 1).clamp(-1, 1).std())(x)",
    "torch.vmap(lambda v: torch.roll(F.pad(v, (2, 2)), 1, 0).unfold(0, 4, 2).mean(1))(x)",
    "torch.vmap(lambda v: F.dropout(v, 0.3), randomness='different')(x)",
    "torch.vmap(lambda v: torch.fft.rfft(v).abs())(x)",
    "torch.vmap(lambda v: torch.einsum('i,ij,j->', v, w, v))(x)",
    "torch.vmap(torch.cdist, (0, None))(q, q[0])",
    "torch.vmap(torch.vmap(torch.vmap(torch.outer)))(q, q)",
    "torch.vmap(lambda a, b: F.kl_div(a.log_softmax(0), b.softmax(0)), (0, 0))(x, x.flip(0))",
    "f.jvp(lambda w: torch.linalg.qr(w)[1].diagonal().abs().log().sum(), (w,), (w.mT,))",
    "f.vjp(f.grad(lambda v: torch.tanh(w @ v).pow(2).sum()), v)[1](v)",
    "torch.vmap(lambda t: f.jvp(lambda v: torch.tanh(w @ v), (v,), (t,))[1])(torch.eye(12))",
    "torch.vmap(f.vjp(lambda v: torch.tanh(w @ v), v)[1])(torch.eye(12))",
):
    expression("transforms", _code, **NAMES)


def loss_of(torch, net, criterion):
    return lambda p, x, y: criterion(torch.func.functional_call(net, p, (x,)), y)


def parameters(net):
    return {name: p.detach() for name, p in net.named_parameters()}


@row("transforms", "clipped gradients of 32 samples of a transformer layer")
def _private(torch):
    nn, f = torch.nn, torch.func
    layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True, norm_first=True)
    net = nn.Sequential(nn.Embedding(50, 16), layer, nn.Flatten(), nn.Linear(160, 2))
    loss = loss_of(torch, net, nn.functional.cross_entropy)
    each = torch.vmap(f.grad(lambda p, x, y: loss(p, x[None], y[None])), (None, 0, 0))
    params, x, y = parameters(net), torch.randint(50, (32, 10)), torch.randint(2, (32,))

    def run():
        grads = each(params, x, y)
        norms = sum(g.flatten(1).pow(2).sum(1) for g in grads.values()).sqrt()
        scale = (1 / (norms + 1e-6)).clamp(max=1)
        return {k: torch.einsum("i,i...->...", scale, g) / 32 for k, g in grads.items()}

    return run


@row("transforms", "Adam on six networks at once, with bootstrapped batches")
def _bootstrap(torch):
    f, nets = torch.func, [perceptron(torch, 8, 32, 32, 1, act="SiLU") for _ in range(6)]
    params, _ = f.stack_module_state(nets)
    loss = loss_of(torch, nets[0], torch.nn.functional.mse_loss)
    grad = torch.vmap(f.grad(loss))
    leaves = {k: p.detach().requires_grad_() for k, p in params.items()}
    optimizer = torch.optim.Adam(leaves.values(), foreach=True)
    x, y = torch.randn(200, 8), torch.randn(200, 1)

    def run():
        chosen = torch.randint(200, (6, 32))
        grads = grad({k: p.detach() for k, p in leaves.items()}, x[chosen], y[chosen])
        for k, p in leaves.items():
            p.grad = grads[k]
        optimizer.step()

    return run


@row("transforms", "MAML of a convolutional network, 4 tasks, 2 inner steps")
def _meta(torch):
    nn, f = torch.nn, torch.func
    net = nn.Sequential(nn.Conv2d(1, 8, 3, 2), nn.ReLU(), nn.Conv2d(8, 8, 3, 2), nn.ReLU(),
                        nn.Flatten(), nn.Linear(32, 5))  # fmt: skip
    loss, params = loss_of(torch, net, nn.functional.cross_entropy), parameters(net)

    def task(p, x, y):
        for _ in range(2):
            grads = f.grad(loss)(p, x, y)
            p = {k: p[k] - 0.1 * grads[k] for k in p}
        return loss(p, x, y)

    outer = f.grad_and_value(lambda p, x, y: torch.vmap(task, (None, 0, 0))(p, x, y).mean())
    x, y = torch.randn(4, 10, 1, 11, 11), torch.randint(5, (4, 10))
    return lambda: outer(params, x, y)


@row("transforms", "heat equation's residual: jacfwd and hessian at 128 points")
def _heat(torch):
    f, net = torch.func, perceptron(torch, 3, 32, 32, 1, act="Tanh")
    params, points = parameters(net), torch.rand(128, 3)

    def residual(p, z):
        u = lambda z: f.functional_call(net, p, (z,))[0]
        second = f.hessian(u)(z)
        return f.jacfwd(u)(z)[2] - second[0, 0] - second[1, 1]

    grad = f.grad(lambda p: torch.vmap(residual, (None, 0))(p, points).pow(2).mean())
    return lambda: grad(params)


@row("transforms", "Laplacian of log psi by jvp of grad, 32 walkers of 9 coordinates")
def _walkers(torch):
    f, net = torch.func, perceptron(torch, 9, 32, 32, 1, act="Tanh")
    params, walkers, basis = parameters(net), torch.randn(32, 9), torch.eye(9)

    def energy(x):
        log = lambda x: f.functional_call(net, params, (x,))[0] - x.pow(2).sum()
        push = lambda t: f.jvp(f.grad(log), (x,), (t,))
        g, second = torch.vmap(push)(basis)
        return -0.5 * (second.diagonal().sum() + g[0].pow(2).sum())

    return lambda: torch.vmap(energy)(walkers)


@row("transforms", "a Gauss-Newton product by jvp and vjp, 5 conjugate gradients")
def _gauss_newton(torch):
    f, net = torch.func, perceptron(torch, 10, 32, 5, act="Tanh")
    params, x = parameters(net), torch.randn(40, 10)
    start = {k: torch.randn_like(p) for k, p in params.items()}

    def product(v):
        call = lambda p: f.functional_call(net, p, (x,))
        out, push = f.jvp(call, (params,), (v,))
        p = out.softmax(1)
        push = p * push - p * (p * push).sum(1, keepdim=True)
        return f.vjp(call, params)[1](push)[0]

    def dot(a, b):
        return sum((a[k] * b[k]).sum() for k in a)

    def run():
        solution = {k: torch.zeros_like(g) for k, g in start.items()}
        rest, way, size = start, start, dot(start, start)
        for _ in range(5):
            image = product(way)
            step = size / (dot(way, image) + 1e-6)
            solution = {k: solution[k] + step * way[k] for k in way}
            rest = {k: rest[k] - step * image[k] for k in way}
            new = dot(rest, rest)
            way, size = {k: rest[k] + new / size * way[k] for k in way}, new
        return solution

    return run


@row("transforms", "Hutchinson's trace of a Jacobian with 8 probes, 64 states")
def _probes(torch):
    f, net = torch.func, perceptron(torch, 6, 48, 6, act="Tanh")
    x, probes = torch.randn(64, 6), torch.randn(8, 64, 6).sign()

    def run():
        _, pull = f.vjp(net, x)
        return (torch.vmap(lambda e: pull(e)[0])(probes) * probes).sum(-1).mean(0)

    return run


@row("transforms", "joints of an arm: vmap of jacrev, damped least squares")
def _arm(torch):
    f, lengths, goals = torch.func, torch.tensor([1.0, 0.8, 0.6, 0.4]), torch.randn(50, 2) * 0.5

    def hand(angles):
        total = angles.cumsum(0)
        return torch.stack([(lengths * total.cos()).sum(), (lengths * total.sin()).sum()])

    jacobian = torch.vmap(f.jacrev(hand))

    def run():
        angles = torch.zeros(50, 4) + 0.1
        for _ in range(3):
            j, error = jacobian(angles), goals - torch.vmap(hand)(angles)
            square = j @ j.mT + 0.01 * torch.eye(2)
            angles = angles + (j.mT @ torch.linalg.solve(square, error[..., None]))[..., 0]
        return angles

    return run


@row("transforms", "sensitivity of a pendulum: jacfwd through 25 Runge-Kutta steps")
def _pendulum(torch):
    f = torch.func

    def end(p):
        def slope(z):
            return torch.stack([z[1], -p[0] * torch.sin(z[0]) - p[1] * z[1]])

        z = p[2:]
        for _ in range(25):
            a = slope(z)
            b = slope(z + 0.02 * a)
            c = slope(z + 0.02 * b)
            d = slope(z + 0.04 * c)
            z = z + 0.04 / 6 * (a + 2 * b + 2 * c + d)
        return z

    start = torch.tensor([9.8, 0.1, 1.0, 0.0])
    return lambda: f.jacfwd(end)(start)


@row("transforms", "Fisher information of a small network from scores, natural gradient")
def _fisher(torch):
    f, net = torch.func, perceptron(torch, 6, 10, 3, act="Tanh")
    params, x = parameters(net), torch.randn(60, 6)

    def score(p, x, y):
        return f.functional_call(net, p, (x,)).log_softmax(-1).gather(0, y[None])[0]

    def run():
        y = torch.randint(3, (60,))
        scores = torch.vmap(f.grad(lambda p, x, y: score(p, x, y)), (None, 0, 0))
        grads = torch.cat([g.flatten(1) for g in scores(params, x, y).values()], 1)
        fisher = grads.mT @ grads / 60 + 1e-2 * torch.eye(grads.shape[1])
        return torch.linalg.solve(fisher, grads.mean(0))

    return run
