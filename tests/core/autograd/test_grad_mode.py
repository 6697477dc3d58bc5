"""Switching the recording of the graph off and on: blocks, decorators, generators."""
import pytest

import flambeau as torch

X = torch.ones(2, requires_grad=True)


def test_blocks_nest_and_end():
    with torch.no_grad():
        assert not (X * 2).requires_grad
        with torch.enable_grad():
            assert (X * 2).requires_grad
        with torch.set_grad_enabled(True):
            assert torch.is_grad_enabled()
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    with pytest.raises(ZeroDivisionError), torch.no_grad():
        raise ZeroDivisionError
    assert torch.is_grad_enabled()


def test_a_switch_takes_effect_at_once():
    try:
        switch = torch.set_grad_enabled(False)
        assert not torch.is_grad_enabled() and switch.prev is True and switch.mode is False
    finally:
        torch.set_grad_enabled(True)


@pytest.mark.parametrize("decorate", [
    torch.no_grad(), torch.no_grad, torch.inference_mode(), torch.inference_mode,
    lambda function: torch.set_grad_enabled(False)(function)])
def test_decorators(decorate):
    @decorate
    def enabled(a, *, b=2):
        """What it says."""
        return torch.is_grad_enabled() or (a, b) != (1, 3)
    assert enabled(1, b=3) is False
    assert torch.is_grad_enabled() and enabled.__doc__ == "What it says."


def test_a_decorated_generator_runs_inside():
    @torch.no_grad()
    def steps():
        received = yield torch.is_grad_enabled()
        try:
            yield received, torch.is_grad_enabled()
        except ValueError:
            yield "caught", torch.is_grad_enabled()
    generator = steps()
    assert next(generator) is False and torch.is_grad_enabled()
    assert generator.send("given") == ("given", False) and torch.is_grad_enabled()
    assert generator.throw(ValueError) == ("caught", False)


def test_inference_mode():
    with torch.inference_mode():
        inside = X * 2
        assert inside.is_inference() and torch.is_inference_mode_enabled()
        with torch.inference_mode(False):
            assert not torch.is_inference_mode_enabled()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        inside * X
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside Infer"):
        inside.add_(1)
    assert not (X + 1).is_inference()


@pytest.mark.parametrize("value", [3, "a", None])
def test_a_mode_is_a_bool(value):
    with pytest.raises(TypeError, match=r"set_grad_enabled\(\): argument 'enabled' \(position 1\) "
                                        "must be bool, not"):
        torch.set_grad_enabled(value)


def test_multithreading_switch():
    with torch.autograd.set_multithreading_enabled(False):
        (X * 2).sum().backward()
    assert X.grad.tolist() == [2.0, 2.0]
