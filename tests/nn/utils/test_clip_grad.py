"""Gradients kept small."""
import pytest
from script_tests import ScriptTests

import flambeau as torch
from flambeau import nn


class TestScripts(ScriptTests):
    topics = ("utils/clip_grad",)


def with_gradients(*gradients):
    parameters = []
    for gradient in gradients:
        parameters.append(nn.Parameter(torch.zeros(len(gradient or [0]))))
        parameters[-1].grad = None if gradient is None else torch.tensor(gradient)
    return parameters


@pytest.mark.parametrize("kind, wanted", [
    (1, 8.0), (2, 26**0.5), (3, (27 + 64 + 1) ** (1 / 3)), (float("inf"), 4.0)])
def test_the_norm_is_that_of_all_gradients_together(kind, wanted):
    parameters = with_gradients([3.0, -4.0], None, [1.0])
    found = nn.utils.clip_grad_norm_(parameters, 2.0, norm_type=kind)
    assert found.item() == pytest.approx(wanted)
    left = torch.cat([p.grad for p in parameters if p.grad is not None])
    assert torch.linalg.vector_norm(left, kind).item() == pytest.approx(2.0, rel=1e-5)
    assert parameters[1].grad is None
    assert left[0] / left[1] == pytest.approx(-3 / 4)


def test_small_gradients_stay():
    parameters = with_gradients([0.3, 0.4])
    nn.utils.clip_grad_norm_(parameters, 2.0)
    assert parameters[0].grad.tolist() == pytest.approx([0.3, 0.4])


@pytest.mark.parametrize("given", [list, iter, tuple])
def test_values_are_cut_off(given):
    parameters = with_gradients([3.0, -0.25], [-2.0])
    nn.utils.clip_grad_value_(given(parameters), 0.5)
    assert [p.grad.tolist() for p in parameters] == [[0.5, -0.25], [-0.5]]


def test_in_two_steps():
    parameters = with_gradients([3.0, 4.0])
    norm = nn.utils.get_total_norm([p.grad for p in parameters])
    assert norm.item() == 5
    nn.utils.clip_grads_with_norm_(parameters, 1.0, norm)
    assert parameters[0].grad.tolist() == pytest.approx([0.6, 0.8], rel=1e-5)


def test_gradients_that_are_not_finite():
    parameters = with_gradients([float("inf"), 1.0])
    with pytest.raises(RuntimeError, match="for gradients from `parameters` is non-finite"):
        nn.utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)
    assert nn.utils.clip_grad_norm_(parameters, 1.0).isinf()


def test_without_gradients_there_is_nothing_to_scale():
    nn.utils.clip_grads_with_norm_([], 1.0, "not looked at")
    with pytest.raises(RuntimeError, match="to be true, but got false"):
        nn.utils.clip_grad_value_([], 1.0)
