"""What the inputs and the outputs of joint graphs are."""
import pytest

from flambeau._functorch._aot_autograd import descriptors

PARAM, BUFFER = descriptors.ParamAOTInput("fc.w"), descriptors.BufferAOTInput("mean")
PLAIN, RESULT = descriptors.PlainAOTInput(2), descriptors.PlainAOTOutput(0)
TANGENT, GRADIENT = descriptors.TangentAOTInput(RESULT), descriptors.GradAOTOutput(PARAM)


@pytest.mark.parametrize("one, expression", [
    (PARAM, "self.get_parameter('fc.w')"), (BUFFER, "self.get_buffer('mean')"),
    (PLAIN, "args[2]"), (RESULT, "output[0]"), (TANGENT, "__output_tangent(output[0])"),
    (GRADIENT, "__grad(self.get_parameter('fc.w'))")])
def test_expressions(one, expression):
    assert one.expr() == expression


def test_equal_ones_are_the_same_key():
    assert descriptors.ParamAOTInput("fc.w") == PARAM != descriptors.BufferAOTInput("fc.w")
    assert {GRADIENT: 1}[descriptors.GradAOTOutput(descriptors.ParamAOTInput("fc.w"))] == 1
    assert repr(TANGENT) == "TangentAOTInput(output=PlainAOTOutput(idx=0))"
    with pytest.raises(AttributeError):
        PARAM.target = "other"


def test_questions():
    inputs = (PARAM, BUFFER, PLAIN, TANGENT)
    assert [one.is_param() for one in inputs] == [True, False, False, False]
    assert [one.is_buffer() for one in inputs] == [False, True, False, False]
    assert [one.is_tangent() for one in inputs] == [False, False, False, True]
    assert GRADIENT.is_grad() and not RESULT.is_grad()
