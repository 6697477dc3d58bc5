"""Helpers for tests: comparing tensors, and making random ones."""
from __future__ import annotations

from flambeau.testing._comparison import assert_allclose, assert_close
from flambeau.testing._creation import make_tensor
from flambeau.testing._filecheck import FileCheck

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]
