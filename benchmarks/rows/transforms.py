"""Derivatives of functions, and functions of slices."""

from .registry import expression, row

SLICES = {"x": "torch.randn(64, 32)", "w": "torch.randn(32, 32)", "v": "torch.randn(32)",
          "i": "torch.randint(32, (64, 8))", "f": "torch.func"}  # fmt: skip
for _code in (
    "torch.vmap(torch.dot)(x, x)",
    "torch.vmap(lambda x: torch.softmax(torch.tanh(x @ w), 0).sum())(x)",
    "torch.vmap(torch.vmap(lambda a, b: (a - b).pow(2).sum(), (None, 0)), (0, None))(x, x)",
    "torch.vmap(lambda x, i: x[i].sum())(x, i)",
    "torch.vmap(f.grad(lambda x, i: x.gather(0, i).pow(2).sum()))(x, i)",
    "torch.vmap(f.grad(lambda x: torch.stack(x.unbind(0)).sin().sum()))(x)",
    "torch.vmap(f.jacrev(lambda x: torch.sin(x[:8] @ w[:8, :8])))(x)",
    "torch.vmap(f.jacfwd(lambda x: torch.sin(x[:8] @ w[:8, :8])))(x)",
    "torch.vmap(lambda x: f.hessian(lambda y: torch.tanh(y @ w[:3]).sum())(x[:3]).trace())(x)",
    "f.hessian(lambda v: torch.tanh(x @ v).pow(2).sum())(v)",
    "f.jvp(f.grad(lambda v: torch.tanh(w @ v).sum()), (v,), (v,))",
    "torch.autograd.functional.jacobian(lambda v: torch.tanh(w @ v), v, vectorize=True)",
):
    expression("transforms", _code, **SLICES)


def small_network(torch):
    nn = torch.nn
    return nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))


def squared_error(torch, net):
    def loss(p, x, y):
        return ((torch.func.functional_call(net, p, (x,)) - y) ** 2).mean()

    return loss


@row("transforms", "a gradient for each sample")
def _per_sample(torch):
    net = small_network(torch)
    params = {k: v.detach() for k, v in net.named_parameters()}
    f = torch.vmap(torch.func.grad(squared_error(torch, net)), (None, 0, 0))
    x, y = torch.randn(64, 16), torch.randn(64, 1)
    return lambda: f(params, x, y)


@row("transforms", "an ensemble of eight networks, their gradients")
def _ensemble(torch):
    nets = [small_network(torch) for _ in range(8)]
    params, _ = torch.func.stack_module_state(nets)
    f = torch.vmap(torch.func.grad(squared_error(torch, nets[0])), (0, None, None))
    x, y = torch.randn(64, 16), torch.randn(64, 1)
    return lambda: f(params, x, y)


@row("transforms", "a step of MAML over eight tasks")
def _meta_learning(torch):
    net = small_network(torch)
    loss = squared_error(torch, net)

    def task(p, x, y):
        g = torch.func.grad(loss)(p, x, y)
        return loss({k: p[k] - 0.1 * g[k] for k in p}, x, y)

    f = torch.func.grad(lambda p: torch.vmap(task, (None, 0, 0))(p, x, y).mean())
    params = {k: v.detach() for k, v in net.named_parameters()}
    x, y = torch.randn(8, 10, 16), torch.randn(8, 10, 1)
    return lambda: f(params)


MORE = {**SLICES, "A": "torch.autograd.functional", "fw": "torch.autograd.forward_ad",
        "s": "torch.randn(8, 3, 12, 12)", "k": "torch.randn(4, 3, 3, 3)",
        "m": "torch.randn(16, 6, 6) + 6 * torch.eye(6)", "e": "torch.randn(50, 16)"}  # fmt: skip
for _code in (
    "torch.vmap(lambda x: F.layer_norm(x, (32,)))(x)",
    "torch.vmap(lambda x: F.conv2d(x[None], k)[0].relu())(s)",
    "torch.vmap(lambda x: F.linear(x, w, v))(x)",
    "torch.vmap(lambda x: torch.cat([x[:3], x[5:]]))(x)",
    "torch.vmap(lambda x: x.sort().values.cumsum(0))(x)",
    "torch.vmap(lambda x: x.reshape(4, 8).transpose(0, 1).sum(1))(x)",
    "torch.vmap(lambda x: torch.where(x > 0, x, x.exp()))(x)",
    "torch.vmap(lambda x: x.index_put((i[0],), x[:8]))(x)",
    "torch.vmap(lambda x: x.scatter_add(0, i[0], x[:8]))(x)",
    "torch.vmap(lambda i: e[i].mean(0))(i)",
    "torch.vmap(lambda i: F.embedding(i, e))(i)",
    "torch.vmap(torch.linalg.solve, (0, None))(m, v[:6])",
    "torch.vmap(torch.linalg.det)(m)",
    "torch.vmap(torch.mm, (0, None))(m, m[0])",
    "torch.vmap(lambda x: torch.einsum('i,j->ij', x, x))(x)",
    "torch.vmap(lambda x: x + torch.randn(32), randomness='different')(x)",
    "torch.vmap(lambda x: F.cross_entropy(x[None], i[0, :1]))(x)",
    "torch.vmap(f.grad(lambda x: x.sort().values[:5].sum()))(x)",
    "torch.vmap(f.grad(lambda x: x.max() + x.norm()))(x)",
    "torch.vmap(f.grad(lambda x: F.softmax(x, 0)[0]))(x)",
    "torch.vmap(f.grad(lambda x: F.conv2d(x[None], k).pow(2).sum()))(s)",
    "torch.vmap(f.grad(lambda x: x[i[0]].prod()))(x)",
    "f.jacrev(lambda v: torch.softmax(w @ v, 0))(v)",
    "f.jacfwd(lambda v: torch.softmax(w @ v, 0))(v)",
    "f.jacrev(f.jacrev(lambda v: torch.tanh(w[:8] @ v).sum()))(v)",
    "f.jacfwd(f.jacfwd(lambda v: torch.tanh(w[:8] @ v).sum()))(v)",
    "f.hessian(lambda v: (100 * (v[1:] - v[:-1] ** 2) ** 2 + (1 - v[:-1]) ** 2).sum())(v)",
    "f.vjp(lambda x: torch.tanh(x @ w), x)[1](x)",
    "f.vjp(lambda v: torch.tanh(w @ v), v)[1](v)",
    "f.jvp(lambda x: F.layer_norm(torch.relu(x @ w), (32,)), (x,), (x,))",
    "f.jvp(lambda x: F.softmax(x, 1).log().sum(), (x,), (x,))",
    "f.linearize(lambda x: torch.tanh(x @ w), x)[1](x)",
    "f.grad_and_value(lambda w: torch.tanh(x @ w).mean())(w)",
    "f.grad(f.grad(f.grad(lambda a: torch.sin(a * a))))(v[0])",
    "A.hessian(lambda v: torch.tanh(w @ v).pow(2).sum(), v)",
    "A.jacobian(lambda v: torch.tanh(w @ v), v)",
    "A.hvp(lambda v: torch.tanh(w @ v).pow(2).sum(), v, v)",
    "A.vhp(lambda v: torch.tanh(w @ v).pow(2).sum(), v, v)",
    "A.jvp(lambda v: torch.tanh(w @ v), v, v)",
    "f.functionalize(lambda x: x.clone().add_(1).mul(2))(x)",
    "torch.vmap(torch.sin)(x)",
):
    expression("transforms", _code, **MORE)


@row("transforms", "a Laplacian of a network at 64 points")
def _laplacian(torch):
    f, net = torch.func, small_network(torch)
    params = {k: v.detach() for k, v in net.named_parameters()}
    x = torch.randn(64, 16)

    def laplacian(x):
        return f.hessian(lambda x: f.functional_call(net, params, (x,))[0])(x).trace()

    return lambda: torch.vmap(laplacian)(x)


@row("transforms", "a Laplacian by forward over reverse")
def _laplacian_forward(torch):
    f, net = torch.func, small_network(torch)
    params = {k: v.detach() for k, v in net.named_parameters()}
    x, eye = torch.randn(64, 16), torch.eye(16)

    def laplacian(x):
        g = f.grad(lambda x: f.functional_call(net, params, (x,))[0])
        return torch.vmap(lambda v: f.jvp(g, (x,), (v,))[1] @ v)(eye).sum()

    return lambda: torch.vmap(laplacian)(x)


@row("transforms", "five inner steps of MAML, second order")
def _maml(torch):
    f, net = torch.func, small_network(torch)
    loss = squared_error(torch, net)
    params = {k: v.detach() for k, v in net.named_parameters()}
    x, y = torch.randn(10, 16), torch.randn(10, 1)

    def outer(p):
        for _ in range(5):
            g = f.grad(loss)(p, x, y)
            p = {k: p[k] - 0.1 * g[k] for k in p}
        return loss(p, x, y)

    return lambda: f.grad(outer)(params)


@row("transforms", "MAML by autograd.grad with create_graph")
def _maml_autograd(torch):
    net = small_network(torch)
    loss = squared_error(torch, net)
    x, y = torch.randn(10, 16), torch.randn(10, 1)

    def run():
        net.zero_grad()
        p = dict(net.named_parameters())
        for _ in range(3):
            g = torch.autograd.grad(loss(p, x, y), list(p.values()), create_graph=True)
            p = {k: v - 0.1 * d for (k, v), d in zip(p.items(), g, strict=True)}
        loss(p, x, y).backward()

    return run


@row("transforms", "gradients of a batched network by grads is_grads_batched")
def _batched(torch):
    w, x, eye = torch.randn(16, 16), torch.randn(16, requires_grad=True), torch.eye(16)

    def run():
        y = torch.tanh(w @ x)
        return torch.autograd.grad(y, x, eye, is_grads_batched=True)

    return run


@row("transforms", "dual numbers of forward_ad")
def _dual(torch):
    from importlib import import_module
    fw = import_module(torch.__name__ + ".autograd.forward_ad")
    x, t, w = torch.randn(32, 16), torch.randn(32, 16), torch.randn(16, 16)

    def run():
        with fw.dual_level():
            y = torch.tanh(fw.make_dual(x, t) @ w).sum()
            return fw.unpack_dual(y).tangent

    return run


@row("transforms", "per-sample gradients of a convolutional network")
def _per_sample_convolutional(torch):
    nn, f = torch.nn, torch.func
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                        nn.Linear(8 * 36, 10))  # fmt: skip
    params = {k: v.detach() for k, v in net.named_parameters()}
    x, y = torch.randn(16, 3, 12, 12), torch.randint(10, (16,))

    def loss(p, x, y):
        return nn.functional.cross_entropy(f.functional_call(net, p, (x[None],)), y[None])

    g = torch.vmap(f.grad(loss), (None, 0, 0))
    return lambda: g(params, x, y)


@row("transforms", "per-sample gradients of attention")
def _per_sample_attention(torch):
    f = torch.func
    w, x = torch.randn(3, 16, 16), torch.randn(8, 10, 16)

    def loss(w, x):
        q, k, v = x @ w[0], x @ w[1], x @ w[2]
        return (torch.softmax(q @ k.t() / 4, -1) @ v).pow(2).mean()

    g = torch.vmap(f.grad(loss), (None, 0))
    return lambda: g(w, x)


@row("transforms", "a neural tangent kernel")
def _tangent_kernel(torch):
    f, net = torch.func, small_network(torch)
    params = {k: v.detach() for k, v in net.named_parameters()}
    x = torch.randn(20, 16)

    def run():
        j = torch.vmap(f.jacrev(lambda p, x: f.functional_call(net, p, (x,))), (None, 0))(params, x)
        j = torch.cat([t.flatten(2) for t in j.values()], 2)
        return torch.einsum("naf,mbf->nmab", j, j)

    return run


@row("transforms", "an ensemble of eight networks, forward")
def _ensemble_forward(torch):
    nets = [small_network(torch) for _ in range(8)]
    params, buffers = torch.func.stack_module_state(nets)

    def call(p, b, x):
        return torch.func.functional_call(nets[0], (p, b), (x,))

    x = torch.randn(64, 16)
    return lambda: torch.vmap(call, (0, 0, None))(params, buffers, x)


@row("transforms", "vmap with chunks over 256 samples")
def _chunks(torch):
    x, w = torch.randn(256, 32), torch.randn(32, 32)
    f = torch.vmap(lambda x: torch.tanh(w @ x).sum(), chunk_size=64)
    return lambda: f(x)


@row("transforms", "a Hessian-vector product of a network's loss")
def _hvp(torch):
    f, net = torch.func, small_network(torch)
    loss = squared_error(torch, net)
    params = {k: v.detach() for k, v in net.named_parameters()}
    v = {k: torch.randn_like(p) for k, p in params.items()}
    x, y = torch.randn(64, 16), torch.randn(64, 1)
    return lambda: f.jvp(f.grad(lambda p: loss(p, x, y)), (params,), (v,))


@row("transforms", "Newton's method by jacfwd, four iterations of 64 roots")
def _newton(torch):
    f, x0 = torch.func, torch.rand(64, 3) + 1

    def g(x):
        return torch.stack([x[0] ** 2 - x[1], x[1] ** 2 - x[2], x.sum() - 3])

    def solve(x):
        for _ in range(4):
            x = x - torch.linalg.solve(f.jacfwd(g)(x), g(x))
        return x

    return lambda: torch.vmap(solve)(x0)


@row("transforms", "a gradient through a loop of 50 steps under vmap")
def _scan(torch):
    w, x = torch.randn(8, 8), torch.randn(32, 8)

    def loss(x):
        for _ in range(50):
            x = torch.tanh(w @ x)
        return x.sum()

    g = torch.vmap(torch.func.grad(loss))
    return lambda: g(x)
