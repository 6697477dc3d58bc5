"""What a tensor inside `vmap` is."""

import pytest

import flambeau as torch
from flambeau._C import _functorch


def test_slices_know_what_they_are_of():
    seen = []

    def look(x):
        seen.append((_functorch.is_batchedtensor(x), _functorch.maybe_get_bdim(x),
                     tuple(_functorch.get_unwrapped(x).shape)))
        return x
    torch.vmap(look, 1)(torch.ones(3, 2))
    assert seen == [(True, 1, (3, 2))]


def test_levels_are_numbered_from_the_outermost():
    seen = []

    def inner(x):
        seen.append((_functorch.maybe_get_level(x), _functorch.maybe_current_level()))
        return x

    def outer(x):
        seen.append((_functorch.maybe_get_level(x), _functorch.maybe_current_level()))
        return torch.vmap(inner)(x)
    torch.vmap(outer)(torch.ones(2, 3))
    assert seen == [(1, 1), (2, 2)]


def test_ordinary_tensors_are_no_slices():
    x = torch.ones(2)
    assert not _functorch.is_batchedtensor(x)
    assert not _functorch.is_functorch_wrapped_tensor(x)
    assert _functorch.maybe_get_bdim(x) == _functorch.maybe_get_level(x) == -1
    assert _functorch.maybe_current_level() is None
    assert _functorch.peek_interpreter_stack() is None
    with pytest.raises(RuntimeError, match="No wrappers present!"):
        _functorch.get_unwrapped(x)


@pytest.mark.parametrize("transform, name", [
    (lambda f: torch.vmap(f)(torch.ones(2)), "Vmap"),
    (lambda f: torch.func.jvp(f, (torch.ones(2),), (torch.ones(2),)), "Jvp")])
def test_the_transform_at_work_has_a_kind_and_a_number(transform, name):
    seen = []

    def look(x):
        interpreter = _functorch.peek_interpreter_stack()
        seen.append((interpreter.key().name, interpreter.level()))
        return x
    transform(look)
    assert seen == [(name, 1)]
