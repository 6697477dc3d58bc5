"""Graphs of TorchScript can be named, and are not made."""

import pytest

from flambeau import _C


@pytest.mark.parametrize("name", [
    "Value", "Block", "Use", "Gradient", "ScriptObject", "ScriptMethod", "IODescriptor"])
def test_nobody_makes_parts(name):
    with pytest.raises(TypeError, match=f"{name}: No constructor defined!"):
        getattr(_C, name)()
