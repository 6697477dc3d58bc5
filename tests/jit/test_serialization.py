"""Files of TorchScript are not there."""
from __future__ import annotations

import pytest
from jit_cases import Net

from flambeau import jit

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")


def test_what_needs_a_compiler(tmp_path):
    for call in (lambda: jit.save(jit.script(Net()), tmp_path / "f"), lambda: jit.load(None),
                 lambda: jit.CompilationUnit(""), lambda: jit.script(Net()).save("f")):
        with pytest.raises(NotImplementedError, match=r"TorchScript"):
            call()


def test_files_are_looked_for_first(tmp_path):
    for path, message in ((tmp_path / "none.pt", "does not exist"), (tmp_path, "is a directory")):
        with pytest.raises(ValueError, match=message):
            jit.load(path)
