"""Modules for mobile devices are not there."""
import pytest

from flambeau.jit import mobile


@pytest.mark.parametrize("call", [lambda: mobile._load_for_lite_interpreter("f.ptl"),
                                  lambda: mobile.LiteScriptModule(None)])
def test_calls_say_so(call):
    with pytest.raises(NotImplementedError, match=r"torch\.jit\.mobile"):
        call()
