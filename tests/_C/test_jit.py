"""Switches of TorchScript's compiler are remembered."""

import pytest

from flambeau import _C


@pytest.mark.parametrize("getter, setter, gives_old", [
    ("_jit_can_fuse_on_cpu_legacy", "_jit_override_can_fuse_on_cpu_legacy", False),
    ("_jit_can_fuse_on_cpu", "_jit_override_can_fuse_on_cpu", False),
    ("_jit_texpr_fuser_enabled", "_jit_set_texpr_fuser_enabled", False),
    ("_jit_texpr_reductions_enabled", "_jit_set_texpr_reductions_enabled", True),
    ("_jit_get_inline_everything_mode", "_jit_set_inline_everything_mode", False),
    ("_get_graph_executor_optimize", "_set_graph_executor_optimize", False),
])
def test_switches(getter, setter, gives_old):
    get, set_ = getattr(_C, getter), getattr(_C, setter)
    first = get()
    assert set_(not first) == (first if gives_old else None)
    assert get() is (not first)
    set_(first)
    assert get() is first


def test_how_often_code_is_specialised():
    before = _C._jit_set_fusion_strategy([("STATIC", 3), ("DYNAMIC", 4)])
    try:
        assert _C._jit_set_fusion_strategy([("STATIC", 1)]) == [("STATIC", 3), ("DYNAMIC", 4)]
        with pytest.raises((ValueError, RuntimeError)):
            _C._jit_set_fusion_strategy([("SOMETIMES", 1)])
    finally:
        _C._jit_set_fusion_strategy(before)
    assert before == [("STATIC", 2), ("DYNAMIC", 10)]


def test_hooks_are_kept():
    before = _C._jit_get_emit_hooks()
    try:
        _C._jit_set_emit_hooks(lambda module: module, lambda function: [function])
        on_module, on_function = _C._jit_get_emit_hooks()
        assert callable(on_module) and on_function is not None
    finally:
        _C._jit_set_emit_hooks(*before)
    assert _C._jit_get_emit_hooks() == before
