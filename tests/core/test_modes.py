import pytest

import flambeau
from flambeau.core.modes import Level, interceptors


def test_grad_modes_nest_and_decorate():
    x = flambeau.ones(1, requires_grad=True)
    with flambeau.no_grad():
        assert not (x * 2).requires_grad
        with flambeau.enable_grad():
            assert (x * 2).requires_grad
        assert not flambeau.is_grad_enabled()

    @flambeau.no_grad()
    def f():
        yield (x * 2).requires_grad
        yield (x * 2).requires_grad
    assert list(f()) == [False, False] and flambeau.is_grad_enabled()
    with flambeau.set_grad_enabled(False):
        assert not flambeau.is_grad_enabled()
    with pytest.raises(ZeroDivisionError), flambeau.no_grad():
        1 / 0
    assert flambeau.is_grad_enabled()


def test_inference_mode():
    x = flambeau.ones(2, requires_grad=True)
    with flambeau.inference_mode():
        y = x * 2
        assert flambeau.is_inference_mode_enabled()
    assert y.is_inference() and not y.requires_grad
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * y


@pytest.mark.parametrize("write", [
    lambda y, made: y.mul_(made), lambda y, made: y.div_(made), lambda y, made: y.pow_(made),
    lambda y, made: y.lerp_(made, made)])
def test_what_cannot_be_saved_is_refused_before_it_is_written(write):
    with flambeau.inference_mode():
        made = flambeau.full((3,), 4.0)
    y = flambeau.full((3,), 2.0, requires_grad=True) * 1
    node = y.grad_fn
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        write(y, made)
    assert y.tolist() == [2.0, 2.0, 2.0] and y._version == 0 and y.grad_fn is node


def test_a_level_ends_with_an_exception():
    class Plain(Level):
        def __call__(self, op, args):
            raise ValueError("no")
    with pytest.raises(ValueError), Plain():
        flambeau.ones(1).exp()
    assert not interceptors and flambeau.ones(1).exp() is not None


def test_inference_tensors_are_resized_and_turned_where_they_were_made():
    with flambeau.inference_mode():
        x = flambeau.ones(1, 2, requires_grad=True)
        assert x.transpose_(0, 1).shape == (2, 1) and x.resize_(1, 1).shape == (1, 1)
        y = flambeau.ones(1, 1)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        flambeau.mul(flambeau.ones(1, 1), 2, out=y)
