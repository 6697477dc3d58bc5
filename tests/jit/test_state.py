"""Whether TorchScript is on."""
import pytest

import flambeau as torch
from flambeau.jit import _state


@pytest.mark.filterwarnings("ignore")
def test_it_can_be_turned_off():
    def f(x):
        return x + 1
    _state.disable()
    try:
        assert not _state._enabled.enabled and torch.jit.script(f) is f
    finally:
        _state.enable()
    assert _state._enabled.enabled and torch.jit.script(f) is not f


def test_functions_are_remembered_while_they_live():
    def f():
        return 1
    assert _state._try_get_jit_cached_function(f) is None
    assert _state._try_get_jit_cached_overloads(f) is None
    assert _state._get_script_class(type("Unknown", (), {})) is None
    assert _state._get_python_class("__torch__.Unknown") is None
