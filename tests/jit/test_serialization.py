"""Files of TorchScript are not there."""
from __future__ import annotations

import pytest
from jit_cases import Net

from flambeau import jit

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")


def test_what_needs_a_compiler(tmp_path):
    for call in (lambda: jit.save(jit.script(Net()), tmp_path / "f"), lambda: jit.load("f"),
                 lambda: jit.CompilationUnit(""), lambda: jit.script(Net()).save("f")):
        with pytest.raises(NotImplementedError, match=r"TorchScript"):
            call()
