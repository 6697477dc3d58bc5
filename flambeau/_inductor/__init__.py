"""TorchInductor, PyTorch's compiler: it is not there.

What programs set, ask and import of it is; what would compile raises NotImplementedError.
"""
from __future__ import annotations

from typing import Any

from flambeau._dynamo._absent import COMPILER, absent_function
from flambeau._support.lazy.modules import lazy_package

compile = absent_function("torch._inductor", "compile", COMPILER)
aoti_compile_and_package = absent_function("torch._inductor", "aoti_compile_and_package", COMPILER)
aoti_load_package = absent_function("torch._inductor", "aoti_load_package", COMPILER)
aot_compile = absent_function("torch._inductor", "aot_compile", COMPILER)
standalone_compile = absent_function("torch._inductor", "standalone_compile", COMPILER)


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, Any]:
    """What the modes of `torch.compile` set.

    >>> list_mode_options("max-autotune-no-cudagraphs")
    {'max_autotune': True, 'coordinate_descent_tuning': True}
    """
    options: dict[str, dict[str, Any]] = {
        "default": {}, "lite": {}, "reduce-overhead": {"triton.cudagraphs": True},
        "max-autotune-no-cudagraphs": {"max_autotune": True, "coordinate_descent_tuning": True},
        "max-autotune": {"max_autotune": True, "triton.cudagraphs": True,
                         "coordinate_descent_tuning": True}}
    if mode is not None and mode not in options:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(options)}")
    return options if mode is None else options[mode]


def list_options() -> list[str]:
    """The names of the switches."""
    from flambeau._inductor import config
    return sorted(config.to_dict())             # type: ignore[attr-defined]


def cudagraph_mark_step_begin() -> None:
    """Has no recorded graphs to tell."""


__getattr__ = lazy_package(__name__)
__all__ = ["aot_compile", "aoti_compile_and_package", "aoti_load_package", "compile",
           "cudagraph_mark_step_begin", "list_mode_options", "list_options", "standalone_compile"]
