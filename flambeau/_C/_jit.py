"""The switches of TorchScript's compiler: remembered, for programs that set them; nothing is
compiled."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from flambeau._support.c_functions import matched


def _switch(getter: str, setter: str, first: Any, gives_old: bool = False) -> None:
    """Make a pair of functions that read and set one value; the setter may give the old one."""
    state = [first]

    def get() -> Any:
        return state[0]

    def set_(value: Any) -> Any:
        before, state[0] = state[0], type(first)(value)
        return before if gives_old else None

    for name, function in ((getter, get), (setter, set_)):
        function.__name__ = function.__qualname__ = name
        function.__doc__ = "Reads or sets a switch of the compiler, which is not there."
        if name:
            globals()[name] = function


for _getter, _setter, _first, _gives_old in (
        ("", "_jit_set_profiling_executor", True, True),
        ("_get_graph_executor_mode", "_jit_set_profiling_mode", True, True),
        ("_jit_can_fuse_on_cpu", "_jit_override_can_fuse_on_cpu", True, False),
        ("_jit_can_fuse_on_gpu", "_jit_override_can_fuse_on_gpu", False, False),
        ("_jit_can_fuse_on_cpu_legacy", "_jit_override_can_fuse_on_cpu_legacy", False, False),
        ("_jit_texpr_fuser_enabled", "_jit_set_texpr_fuser_enabled", True, False),
        ("_jit_texpr_reductions_enabled", "_jit_set_texpr_reductions_enabled", False, True),
        ("_jit_texpr_fallback_allowed", "_jit_texpr_set_fallback_allowed", False, True),
        ("_jit_texpr_dynamic_shape_enabled", "_jit_set_texpr_dynamic_shape_enabled", False, False),
        ("_jit_get_te_must_use_llvm_cpu", "_jit_set_te_must_use_llvm_cpu", True, False),
        ("_jit_get_num_profiled_runs", "_jit_set_num_profiled_runs", 1, True),
        ("_jit_llga_enabled", "_jit_set_llga_enabled", False, True),
        ("_jit_get_inline_everything_mode", "_jit_set_inline_everything_mode", False, False),
        ("_jit_get_logging_option", "_jit_set_logging_option", "", False),
        ("_get_graph_executor_optimize", "_set_graph_executor_optimize", True, False),
        ("_debug_get_fusion_group_inlining", "_debug_set_fusion_group_inlining", True, False),
        ("", "_debug_set_autodiff_subgraph_inlining", True, False),
        ("_jit_symbolic_shapes_test_mode_enabled", "_jit_set_symbolic_shapes_test_mode", False,
         True),
        ("", "_jit_set_autocast_mode", True, True),
        ("", "_jit_cat_wo_conditionals", False, False),
        ("", "_jit_opt_conditionals", False, False)):
    _switch(_getter, _setter, _first, _gives_old)


def _no_longer(name: str) -> Callable[..., None]:
    def function(*args: Any) -> None:
        warnings.warn(f"nvfuser is no longer supported in torch script, use {name} is deprecated "
                      "and a no-op", stacklevel=2)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Has no effect, as in PyTorch: the fuser is gone."
    return function


for _name in ("_jit_set_nvfuser_enabled", "_jit_nvfuser_enabled", "_jit_set_nvfuser_guard_mode",
              "_jit_set_nvfuser_horizontal_mode", "_jit_set_nvfuser_single_node_mode",
              "_jit_set_nvfuser_skip_node_kind", "_jit_nvfuser_horizontal_mode"):
    globals()[_name] = _no_longer(_name)

_strategy: list[tuple[str, int]] = [("STATIC", 2), ("DYNAMIC", 10)]
_emit_hooks: tuple[Any, Any] = (None, None)


def _are_depths(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(
        isinstance(one, Sequence) and len(one) == 2 and isinstance(one[0], str)
        and hasattr(one[1], "__index__") for one in value)


_DEPTHS = "collections.abc.Sequence[tuple[str, typing.SupportsInt | typing.SupportsIndex]]"


@matched(f"(arg0: {_DEPTHS}) -> list[tuple[str, int]]", {_DEPTHS: _are_depths})
def _jit_set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Remembered; gives what it was before."""
    global _strategy
    for kind, depth in strategy:
        if kind not in ("STATIC", "DYNAMIC"):
            raise ValueError(f"FusionBehavior only supported 'STATIC' or 'DYNAMIC', got: {kind}")
        int(depth)
    before, _strategy = _strategy, list(strategy)
    return before


def _jit_set_bailout_depth(depth: int) -> int:
    """The older way to say how many times specialised code is made; gives the number before."""
    before = sum(n for _, n in _strategy)
    _jit_set_fusion_strategy([("STATIC", int(depth))])
    return before


def _jit_get_emit_hooks() -> tuple[Any, Any]:
    """The hooks that are called with what has been compiled."""
    return _emit_hooks


def _jit_set_emit_hooks(on_module: Any, on_function: Any) -> None:
    """Remembered; nothing is ever compiled."""
    global _emit_hooks
    _emit_hooks = on_module, on_function


def _jit_clear_class_registry() -> None:
    """Forget the classes that were scripted."""
    from flambeau.jit import _state
    _state._clear_class_state()
