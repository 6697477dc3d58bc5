"""The rows of `benchmarks/run.py`: functions that take `torch` and give what is to be timed.

Programs of users in small: nothing here knows whose `torch` it is.
"""

ROWS = {}


def row(group, name):
    def register(prepare):
        ROWS[f"{group}: {name}"] = prepare
        return prepare

    return register


def expression(group, code, **make):
    """A row that evaluates `code` on tensors; `make` says how each name in it is made."""

    def prepare(torch):
        names = {"torch": torch, "F": torch.nn.functional}
        for name, source in make.items():
            names[name] = eval(source, names)
        compiled = compile(code, code, "eval")
        return lambda: eval(compiled, names)

    ROWS[f"{group}: {code}"] = prepare


# ---- overhead: calls whose arithmetic costs nothing ---------------------------------------------

SMALL = {
    "a": "torch.ones(4)",
    "b": "torch.ones(4)",
    "x": "torch.ones(4, requires_grad=True)",
    "m": "torch.ones(4, 4)",
}
for _code in (
    "a + b",
    "x * b",
    "a * 2.0",
    "x.sin()",
    "a.add_(b)",
    "m[1]",
    "m[1:3, ::2]",
    "m.view(2, 8)",
    "m.sum(dim=1)",
    "m @ m",
    "torch.cat([a, b])",
    "torch.zeros(2, 3)",
    "(x * b).sum().backward()",
):
    expression("overhead", _code, **SMALL)


@row("overhead", "1,000 operations and backward")
def _chain(torch):
    x = torch.ones(4, requires_grad=True)
    b = torch.full((4,), 0.5)

    def run():
        y = x
        for _ in range(500):
            y = y * b + x
        y.sum().backward()

    return run


# ---- kernels: calls that are arithmetic ---------------------------------------------------------

LARGE = {"a": "torch.rand(1024, 1024)", "b": "torch.rand(1024, 1024)", "v": "torch.rand(1024)"}
for _code in (
    "a + b",
    "a * v",
    "a.exp()",
    "a.tanh()",
    "a.sum()",
    "a.sum(0)",
    "a.t().contiguous()",
    "a.softmax(1)",
    "F.layer_norm(a, (1024,), v, v)",
    "F.gelu(a)",
    "a.argmax(1)",
    "a.cumsum(1)",
    "a.sort(1)",
    "a.topk(5)",
    "a @ b",
    "a // b",
    "a % b",
    "a.t().sum()",
    "a.erfinv()",
    "a.cummax(1)",
    "a[a > 0.5]",
    "F.hardswish(a)",
    "F.hardshrink(a)",
    "a.clamp(0.2, 0.8)",
    "torch.cat([a, b], 1)",
    "torch.stack([v, v], 1)",
    "torch.zeros_like(a.t())",
):
    expression("kernels", _code, **LARGE)
for _code in ("x.sum(0)", "x.sum(1)", "x.sum(2)", "x.mean((0, 2))", "x.flip(2)"):
    expression("kernels", _code, x="torch.rand(64, 128, 96)")
expression("kernels", "a + b.t()", a="torch.rand(1448, 1448)", b="torch.rand(1448, 1448)")
expression("kernels", "x.index_select(1, i)",
           x="torch.rand(512, 600)", i="torch.randint(600, (300,))")  # fmt: skip
expression("kernels", "F.binary_cross_entropy_with_logits(x, y)",
           x="torch.rand(512, 200)", y="torch.rand(512, 200)")  # fmt: skip
expression("kernels", "F.linear(x, w, v)", x="torch.rand(256, 512)", w="torch.rand(512, 512)",
           v="torch.rand(512)")  # fmt: skip
expression("kernels", "torch.bmm(x, x)", x="torch.rand(64, 64, 64)")
expression("kernels", "x @ v", x="torch.rand(1000, 1000)", v="torch.rand(1000)")
expression("kernels", "torch.linalg.lu(a)", a="torch.rand(128, 128)")
expression("kernels", "F.conv2d(x, w, padding=1)",
           x="torch.rand(8, 16, 32, 32)", w="torch.rand(32, 16, 3, 3)")  # fmt: skip
expression("kernels", "F.max_pool2d(x, 2)", x="torch.rand(8, 16, 64, 64)")
expression("kernels", "F.scaled_dot_product_attention(q, q, q, is_causal=True)",
           q="torch.rand(4, 4, 128, 32)")  # fmt: skip
expression("kernels", "F.embedding(i, w)",
           i="torch.randint(1000, (64, 64))", w="torch.rand(1000, 64)")  # fmt: skip
expression("kernels", "F.huber_loss(x, y)", x="torch.rand(256, 1024)", y="torch.rand(256, 1024)")
expression("kernels", "F.group_norm(x, 8)", x="torch.rand(1024, 256)")
expression("kernels", "F.pad(x, (1, 1, 1, 1), 'reflect')", x="torch.rand(8, 16, 64, 64)")
expression("kernels", "F.grid_sample(x, g, 'bicubic', align_corners=False)",
           x="torch.rand(2, 3, 64, 64)", g="2 * torch.rand(2, 64, 64, 2) - 1")  # fmt: skip
expression("kernels", "x.index_reduce(0, i, y, 'amax')", x="torch.randn(1000, 64)",
           i="torch.randint(1000, (2000,))", y="torch.randn(2000, 64)")  # fmt: skip
expression("kernels", "F.ctc_loss(x.log_softmax(2), c, [50] * 16, [30] * 16)",
           x="torch.randn(50, 16, 20)", c="torch.randint(1, 20, (16, 30))")  # fmt: skip
expression("kernels", "torch.linalg.solve(a, b)",
           a="torch.rand(128, 128) + 128 * torch.eye(128)", b="torch.rand(128, 8)")  # fmt: skip
expression("kernels", "torch.cholesky_solve(b, torch.linalg.cholesky(a))",
           a="torch.rand(128, 128) + 128 * torch.eye(128)", b="torch.rand(128, 8)")  # fmt: skip
expression("kernels", "i @ i", i="torch.randint(-99, 99, (256, 256))")
expression("kernels", "torch.fft.rfft(x)", x="torch.rand(256, 4096)")
expression("kernels", "torch.fft.fft(x)", x="torch.rand(64, 1000)")
expression("kernels", "torch.fft.fft2(x)", x="torch.rand(8, 128, 128) + 0j")
expression("kernels", "torch.randn(1000, 1000)")


# ---- training: forward, backward and a step of the optimiser ------------------------------------


def training(torch, model, optimizer, x, y):
    loss_function = torch.nn.CrossEntropyLoss()

    def run():
        optimizer.zero_grad()
        loss_function(model(x), y).backward()
        optimizer.step()

    return run


@row("training", "multilayer perceptron, batch of 64")
def _perceptron(torch):
    nn = torch.nn
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(),
                          nn.Linear(256, 10))  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return training(torch, model, optimizer, torch.randn(64, 128), torch.randint(10, (64,)))


@row("training", "convolutional network, batch of 32")
def _convolutional(torch):
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 10),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters())
    return training(torch, model, optimizer, torch.randn(32, 1, 28, 28), torch.randint(10, (32,)))


@row("training", "LSTM, batch of 16, 32 steps")
def _recurrent(torch):
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.head = nn.LSTM(32, 64, batch_first=True), nn.Linear(64, 10)

        def forward(self, x):
            return self.head(self.lstm(x)[0][:, -1])

    model = Model()
    optimizer = torch.optim.Adam(model.parameters())
    return training(torch, model, optimizer, torch.randn(16, 32, 32), torch.randint(10, (16,)))


@row("training", "transformer layer, batch of 8, 64 tokens")
def _transformer(torch):
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
            self.head = nn.Linear(64, 10)

        def forward(self, x):
            return self.head(self.layer(x).mean(1))

    model = Model()
    optimizer = torch.optim.AdamW(model.parameters())
    return training(torch, model, optimizer, torch.randn(8, 64, 64), torch.randint(10, (8,)))


# ---- transforms: derivatives of functions, and functions of slices ------------------------------

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


# ---- optimizers: steps over few large and many small parameters ---------------------------------

SIZES = {"3 large": [(1024, 1024), (1024, 512), (512, 512)], "200 small": [(32, 32), (32,)] * 100}


def step_of(name, shapes, **options):
    def prepare(torch):
        params = [torch.nn.Parameter(torch.randn(*shape)) for shape in shapes]
        for p in params:
            p.grad = torch.randn_like(p)
        return getattr(torch.optim, name)(params, **options).step

    return prepare


for _size, _shapes in SIZES.items():
    for _name, _options in (("Adam", {}), ("AdamW", {"amsgrad": True}),
                            ("SGD", {"lr": 0.01, "momentum": 0.9}), ("RMSprop", {})):  # fmt: skip
        _said = "".join(f", {k}" for k in _options if k != "lr")
        row("optimizers", f"{_name}{_said}, {_size} parameters")(
            step_of(_name, _shapes, **_options))
