"""Modules whose parameters count as constants."""
from __future__ import annotations

import pytest
from jit_cases import Net

from flambeau import jit

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")


def test_freeze():
    scripted = jit.script(Net())
    with pytest.raises(RuntimeError, match="only implemented for modules in eval mode"):
        jit.freeze(scripted)
    with pytest.raises(RuntimeError, match="Freezing expects a ScriptModule"):
        jit.freeze(Net())
    assert repr(jit.freeze(scripted.eval())) == "RecursiveScriptModule(original_name=Net)"
