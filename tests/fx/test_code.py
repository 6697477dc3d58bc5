"""The code that graphs become: as PyTorch writes it, and doing what the program did."""
import math

import pytest

import flambeau
import flambeau as torch
from flambeau import fx, nn

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
CONCRETE = """
def forward(self, x, y_1):
    eq = y_1 == True;  y_1 = None
    _assert = torch._assert(eq, 'y has been specialized to have value True but got another value');\
  eq = _assert = None
    return x
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


def test_fixed_arguments():
    module = fx.symbolic_trace(lambda x, y: x if y else -x, concrete_args={"y": True})
    assert module.code.strip() == CONCRETE.strip()
    assert module(3, True) == 3
    with pytest.raises(AssertionError, match="specialized to have value True"):
        module(3, False)


def test_containers_of_modules_are_opened():
    module = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert module.code.strip() == """
def forward(self, input):
    input_1 = input
    _0 = getattr(self, "0")(input_1);  input_1 = None
    _1 = getattr(self, "1")(_0);  _0 = None
    return _1
    """.strip()
    assert str(module).startswith("Sequential(\n  (0): Linear(in_features=2")
    assert str(module).endswith("\n# To see more debug info, please use "
                                "`graph_module.print_readable()`")
    assert "class Sequential(torch.nn.Module):\n    def forward" in module.print_readable(False)


def test_programs_still_do_what_they_did():
    flambeau.manual_seed(0)
    a, b = flambeau.randn(2, 2), flambeau.randn(2, 2)
    found = fx.symbolic_trace(several)(a.clone(), b)
    expected = several(a.clone(), b)
    for x, y in zip((*found[0], found[1], *found[3:]), (*expected[0], expected[1], *expected[3:])):
        assert flambeau.equal(x, y)
    assert found[2] == math.sqrt(2)
    assert flambeau.equal(fx.symbolic_trace(starred)(a, 2.0, b), starred(a, b, scale=2.0))


@pytest.mark.parametrize(("program", "error", "message"), [
    (lambda x: x if x.sum() > 0 else -x, fx.proxy.TraceError, "inputs to control flow"),
    (lambda x: [y for y in x], fx.proxy.TraceError, "Proxy object cannot be iterated"),  # noqa: C416
    (lambda x: len(x), RuntimeError, "'len' is not supported in symbolic tracing"),
    (lambda x: exec("x[0] = 3", {"x": x}), TypeError, "does not support item assignment"),
])
def test_what_cannot_be_traced(program, error, message):
    with pytest.raises(error, match=message):
        fx.symbolic_trace(program)


def test_nothing_is_left_behind():
    from flambeau.core import modes
    call, before = nn.Module.__call__, list(modes.interceptors)
    with pytest.raises(fx.proxy.TraceError):
        fx.symbolic_trace(lambda x: 1 if x else 2)
    assert nn.Module.__call__ is call and modes.interceptors == before and math.sqrt(4) == 2


def test_unpacking():
    module = fx.symbolic_trace(lambda x: (lambda a, b: a + b)(*_two(x)))
    assert flambeau.equal(module(flambeau.tensor([1.0, 2.0])), flambeau.tensor(3.0))


def _two(x):
    a, b = x
    return a, b


def test_nodes_named_like_builtins_do_not_hide_them():
    graph = fx.Graph()
    given = [graph.placeholder(name) for name in ("a", "b")]
    for node, name in zip(given, ("sum", "len")):
        node.name = node.target = name
    total = graph.call_function(flambeau.add, tuple(given))
    graph.output(total)
    code = fx.GraphModule({}, graph).code.split()
    assert "sum_1 = sum len_1 = len add = torch.add(sum_1, len_1);" in " ".join(code)
    assert repr(given[0]) == "sum"
    assert fx.GraphModule({}, graph)(torch.ones(1), torch.ones(1)) == 2
