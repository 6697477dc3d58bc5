"""The transforms under the names of PyTorch's modules."""
import importlib

import pytest

from flambeau import func, functorch


@pytest.mark.parametrize("module, name, home", [
    ("apis", "vmap", func), ("apis", "grad", func), ("eager_transforms", "jacrev", func),
    ("eager_transforms", "linearize", func), ("functional_call", "functional_call", func),
    ("batch_norm_replacement", "replace_all_batch_norm_modules_", func),
    ("make_functional", "make_functional_with_buffers", functorch), ("vmap", "vmap", func)])
def test_names(module, name, home):
    found = importlib.import_module(f"flambeau._functorch.{module}")
    assert getattr(found, name) is getattr(home, name)
