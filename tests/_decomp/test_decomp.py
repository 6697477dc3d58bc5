"""Tables that write ops with simpler ones."""

import pytest

import flambeau as torch
from flambeau import _decomp

aten = torch.ops.aten


def test_a_function_stands_for_one_overload_or_for_all():
    table = {}

    @_decomp.register_decomposition(aten.relu.default, table)
    def relu(x):
        return x.clamp(min=0)

    @_decomp.register_decomposition([aten.add, aten.neg.default], table)
    def other(*args):
        return args

    assert table[aten.relu.default] is relu and table[aten.neg.default] is other
    assert table[aten.add.Tensor] is table[aten.add.Scalar] is other
    with pytest.raises(RuntimeError, match="duplicate registrations for"):
        _decomp.register_decomposition(aten.relu, table)(relu)


def test_kinds_of_tables():
    assert set(_decomp.global_decomposition_table) == {"post_autograd", "pre_autograd", "meta"}
    assert _decomp.decomposition_table is _decomp.global_decomposition_table["post_autograd"]
    with pytest.raises(AssertionError):
        _decomp.register_decomposition(aten.relu.default, type="afterwards")(lambda x: x)


def test_ops_without_one_are_left_out():
    found = _decomp.get_decompositions([aten.silu, aten.mm])
    assert aten.silu.default in found and aten.mm.default not in found


@pytest.mark.parametrize("op, args", [
    ("silu", ()), ("mish", ()), ("softplus", (2.0, 1.0)), ("rsub", (2.0,)),
])
def test_decompositions_compute_what_the_op_does(op, args):
    overload = aten.rsub.Scalar if op == "rsub" else getattr(aten, op).default
    function = _decomp.get_decompositions([overload])[overload]
    x = torch.linspace(-2, 2, 9, dtype=torch.float64)
    torch.testing.assert_close(function(x, *args), overload(x, *args))


def test_ops_are_taken_out_of_a_table():
    table = dict(_decomp.core_aten_decompositions().items())
    count = len(table)
    assert aten.silu.default in table and aten.add.Tensor not in table
    _decomp.remove_decompositions(table, [aten.silu, aten.add.Tensor])
    assert aten.silu.default not in table and len(table) < count
