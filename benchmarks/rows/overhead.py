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
