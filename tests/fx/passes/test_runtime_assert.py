"""Assertions on symbolic sizes."""
import types

import pytest

from flambeau import fx
from flambeau.fx.passes.runtime_assert import insert_deferred_runtime_asserts


def test_sizes_that_are_known_need_none():
    module = fx.symbolic_trace(lambda x: x + 1)
    before = module.code
    environment = types.SimpleNamespace(deferred_runtime_asserts={})
    assert insert_deferred_runtime_asserts(module, environment, "name") is None
    assert module.code == before
    environment.deferred_runtime_asserts = {"u0": ["u0 > 2"]}
    with pytest.raises(NotImplementedError, match="sizes that depend on values"):
        insert_deferred_runtime_asserts(module, environment, "name")
