"""The code that graphs become: as PyTorch writes it, and doing what the program did."""
import math

import pytest

import flambeau
import flambeau as torch
from flambeau import fx

OPERATORS = """
def forward(self, x):
    add = x + 1
    add_1 = 1 + x
    sub = x - 1
    sub_1 = 1 - x
    truediv = 2 / x
    floordiv = x // 2
    pow_1 = x ** 2
    pow_2 = 2 ** x
    lt = x < 1
    ne = x != 1
    neg = -x
    abs_1 = _operator_abs(x)
    matmul = x @ x;  x = None
    return (add, add_1, sub, sub_1, truediv, floordiv, pow_1, pow_2, lt, ne, neg, abs_1, matmul)
"""
SEVERAL = """
def forward(self, a, b):
    add = a + b
    cat = torch.cat([a, b], dim = 1)
    add_ = a.add_(b)
    gt = a > 0
    where = torch.where(gt, a, b);  gt = a = b = None
    _tensor_constant0 = self._tensor_constant0
    return ([add, cat], _tensor_constant0, 1.4142135623730951, add_, where)
"""
ATTRIBUTES = """
def forward(self, x):
    c = x.c(1)
    getattr_1 = x.a;  x = None
    getattr_2 = getattr_1.b;  getattr_1 = None
    return (getattr_2, c)
"""
INDEX = """
def forward(self, x):
    _tensor_constant0 = self._tensor_constant0
    getitem = x[(Ellipsis, slice(1, 3, None), slice(None, None, 2), _tensor_constant0)];  \
x = _tensor_constant0 = None
    to = getitem.to(torch.float32, device = device(type='cpu'));  getitem = None
    return to
"""
STARS = """
def forward(self, x : torch.Tensor, scale : float = 1.0, *args, **kw):
    _args = args
    _kw = kw
    getitem = _args[0];  _args = None
    add = torch.add(x, getitem);  getitem = None
    mul = add * scale;  add = scale = None
    sin = torch.sin(x);  x = None
    add_1 = mul + sin;  mul = sin = None
    return add_1
"""
WRAPPED = """
torch.fx._symbolic_trace.wrap("CODE_wrapped")

def forward(self, x):
    wrapped = CODE_wrapped(x, 3);  x = None
    return wrapped
"""


@fx.wrap
def wrapped(x, y):
    return x if x.sum() > 0 else y


def starred(x: torch.Tensor, *args, scale: float = 1.0, **kw):
    return torch.add(x, args[0]) * scale + torch.sin(x)


def several(a, b):
    return ([a + b, torch.cat([a, b], dim=1)], torch.zeros(2), math.sqrt(2), a.add_(b),
            torch.where(a > 0, a, b))


@pytest.mark.parametrize(("program", "expected"), [
    (lambda x: (x + 1, 1 + x, x - 1, 1 - x, 2 / x, x // 2, x ** 2, 2 ** x, x < 1, x != 1, -x,
                abs(x), x @ x), OPERATORS),
    (several, SEVERAL), (lambda x: (x.a.b, x.c(1)), ATTRIBUTES), (starred, STARS),
    (lambda x: x[..., 1:3, ::2, torch.tensor([1])].to(torch.float32, device=torch.device("cpu")),
     INDEX),
    (lambda x: wrapped(x, 3), WRAPPED.replace("CODE", __name__.replace(".", "_"))),
])
def test_code(program, expected):
    assert fx.symbolic_trace(program).code.strip() == expected.strip()


def test_code_has_pytorchs_blank_lines():
    assert fx.symbolic_trace(lambda x: -x).code == (
        "\n\n\ndef forward(self, x):\n    neg = -x;  x = None\n    return neg\n    ")


def test_programs_still_do_what_they_did():
    flambeau.manual_seed(0)
    a, b = flambeau.randn(2, 2), flambeau.randn(2, 2)
    found = fx.symbolic_trace(several)(a.clone(), b)
    expected = several(a.clone(), b)
    for x, y in zip((*found[0], found[1], *found[3:]), (*expected[0], expected[1], *expected[3:])):
        assert flambeau.equal(x, y)
    assert found[2] == math.sqrt(2)
    assert flambeau.equal(fx.symbolic_trace(starred)(a, 2.0, b), starred(a, b, scale=2.0))
