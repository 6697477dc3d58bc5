"""What formulas save, and how nodes apply them."""
import numpy as np
import pytest

import flambeau as torch
from flambeau.core.autograd import formulas
from flambeau.core.op import Op, table
from flambeau.dispatch.pointwise import Pointwise


def planned(rules, **attributes):
    op = Op("probe", "general", tensors=("self", "other"), params=("dim",), rules=rules,
            node_name="ProbeBackward0", **attributes)
    formulas.infer_saved_values(op)
    return op


def test_parameters_say_what_is_saved():
    op = planned({"self": lambda grad, other, dim: grad, "other": lambda grad, self_shape, result:
                  grad})
    assert op.saved == ("other", "dim", "self_shape", "result")
    assert op.plan == (("tensor", 1), ("param", 2), ("shape", 0), ("result", 0))
    assert op.users == ({0}, {0}, {1}, {1})         # kept only for who needs it


def test_a_name_that_is_nothing_is_refused():
    with pytest.raises(TypeError, match="parameter 'others' is none of"):
        planned({"self": lambda grad, others: grad})


def test_derivatives_by_some_tensors():
    assert formulas.differentiated(planned({"self": lambda grad: grad})) == (0,)
    assert formulas.differentiated(planned({"self": 1, "other": -1})) is None


def test_what_no_formula_names_is_not_kept():
    assert table["sin"].saved == ("self",) and table["exp"].saved == ("result",)
    assert table["neg"].saved == () and table["mul"].saved == ("other", "self")


@pytest.mark.parametrize("factor, expected", [(1, 2.0), (-1, -2.0), (0, 0.0), (3, 6.0)])
def test_constants(factor, expected):
    grad = torch.tensor(2.0)
    assert formulas.multiply_by_constant(grad, factor).item() == expected
    assert (formulas.multiply_by_constant(grad, factor) is grad) is (factor == 1)


def test_derivatives_of_complex_numbers_are_conjugated():
    assert formulas.conjugate(1 + 2j) == 1 - 2j and formulas.conjugate(3.0) == 3.0
    assert formulas.conjugate(torch.tensor(1 + 2j)).item() == 1 - 2j
    x = torch.tensor([1 + 1j], requires_grad=True)
    (x * x).real.sum().backward()
    assert x.grad.tolist() == [2 - 2j]


def test_divisors_round_once():
    rule = formulas.divides_by(lambda self: self)
    assert formulas.chain_rule_op(rule) == "div" and formulas.chain_rule_op(
        lambda self: self) == "mul"
    x = torch.tensor([3.0], requires_grad=True)
    x.log().backward(torch.tensor([7.0]))
    assert x.grad.item() == float(np.float32(7) / np.float32(3))


def test_signs_are_no_products():
    assert formulas.is_unit(lambda self: 1, 1) and formulas.is_unit(lambda self: -1, -1)
    assert not formulas.is_unit(lambda self: 2, 2)
    assert not formulas.is_unit(formulas.divides_by(lambda self: 1), 1)


def test_formulas_name_the_gradient_where_they_give_it():
    """Without it the incoming gradient would be lost."""
    with pytest.raises(TypeError, match="op probe: d_self is the gradient itself and has to name"):
        planned({"self": lambda other: 2 * other})
    with pytest.raises(TypeError, match="`d` is the derivative by an only operand, but"):
        _ = Pointwise(texts=("two_operands(Tensor self, Tensor other) -> Tensor",), kernel=np.add,
                      rules={"d": lambda self: self}).ops


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_a_pointwise_formula_may_be_a_factor_or_the_whole_gradient(dtype):
    """In both modes; `pow` of tensors names `grad`, whose place in the product tells its layout."""
    (x, t), y = torch.rand(2, 2, 4, dtype=dtype) + 0.5, torch.rand(4, dtype=dtype) + 0.5
    g = torch.rand(4, 2, dtype=dtype).t()
    for function, slope in ((lambda x: x.pow(y), y * x.pow(y - 1)), (torch.Tensor.sin, x.cos())):
        assert torch.allclose(torch.func.jvp(function, (x,), (t,))[1], t * slope)
        assert torch.allclose(torch.func.vjp(function, x)[1](g)[0], g * slope.conj())
    base = x.clone().requires_grad_()
    for exponent, strides in ((2, (1, 2)), (y, (1, 2)), (t, (4, 1))):
        assert torch.autograd.grad(base.pow(exponent), base, g)[0].stride() == strides


def test_a_rule_for_what_is_no_tensor_is_refused():
    with pytest.raises(TypeError, match=r"there are rules for \['othr'\], but its tensors are"):
        planned({"self": lambda grad: grad, "othr": lambda grad: grad})
