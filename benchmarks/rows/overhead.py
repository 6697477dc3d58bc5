"""Calls whose arithmetic costs nothing."""

from .registry import expression, row

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


for _code, _operands in (
    ("torch.sparse.mm(s, m)", {"s": "torch.eye(4).to_sparse()"}),
    ("s._nnz()", {"s": "torch.eye(4).to_sparse()"}),
    ("torch.where(m > 0, 1.0, 0.0)", {}),
    ("c.exp()", {"c": "torch.ones(4, dtype=torch.complex64)"}),
    ("m[i, 1:3]", {"i": "torch.tensor([0, 2])"}),
    ("torch.cat([p, p], 1)",
     {"p": "torch.ones(2, 2, 3, 3).to(memory_format=torch.channels_last)"}),
    ("torch.layer_norm(e, (4,))", {"e": "torch.empty(0, 4)"}),
    ("torch.linalg.multi_dot([m, m, m, m])", {}),
    ("torch._foreach_add_([a, b], [b, b], alpha=0.1)", {}),
    ("torch.nn.Parameter(a)", {}),
    ("torch.device('cpu')", {}),
    ("torch.finfo(torch.float32).eps", {}),
):
    expression("overhead", _code, **SMALL, **_operands)


@row("overhead", "a + b in a function mode")
def _function_mode(torch):
    from importlib import import_module

    overrides = import_module(f"{torch.__name__}.overrides")

    class Passing(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    a, b = torch.ones(4), torch.ones(4)

    def run():
        with Passing():
            return a + b

    return run


@row("overhead", "a @ b under autocast")
def _autocast(torch):
    a, b = torch.ones(4, 4), torch.ones(4, 4)

    def run():
        with torch.autocast("cpu"):
            return a @ b

    return run
