"""Hooks that PyTorch leaves to its maker's own builds: they answer as in public ones."""
from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Callable
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

torch_parent = os.path.dirname(os.path.dirname(__file__))
TEST_MASTER_ADDR, TEST_MASTER_PORT = "127.0.0.1", 29500
USE_GLOBAL_DEPS, USE_RTLD_GLOBAL_WITH_LIBTORCH = True, False
REQUIRES_SET_PYTHON_MODULE = False
DISABLE_JUSTKNOBS = True


def get_file_path(*path_components: str) -> str:
    """A path below the folder that holds the package."""
    return os.path.join(torch_parent, *path_components)


def get_file_path_2(*path_components: str) -> str:
    """A path of these parts."""
    return os.path.join(*path_components)


def get_writable_path(path: str) -> str:
    """The path, or one for temporary files if it cannot be written to."""
    return path if os.access(path, os.W_OK) else tempfile.mkdtemp(suffix=os.path.basename(path))


def prepare_multiprocessing_environment(path: str) -> None:
    """Has no effect."""


def resolve_library_path(path: str) -> str:
    """The path of a library, with links followed."""
    return os.path.realpath(path)


def throw_abstract_impl_not_imported_error(opname: str, module: str, context: str) -> None:
    """Raise because an op has no fake implementation: the module that has it is not imported."""
    import sys
    hint = "" if module in sys.modules else (
        f"The operator specified that you may need to import the '{module}' Python module to load "
        f"the fake impl. {context}")
    raise NotImplementedError(f"{opname}: We could not find the fake impl for this operator. "
                              f"{hint}")


def justknobs_check(name: str, default: bool = True) -> bool:
    """The default: there is no service to ask."""
    return default


def justknobs_getval_int(name: str) -> int:
    """0: there is no service to ask."""
    return 0


def get_torch_source_version() -> str:
    """The version of the sources."""
    from flambeau.version import git_version
    return git_version or ""


def _nothing(name: str) -> Callable[..., None]:
    def function(*args: Any, **kwargs: Any) -> None:
        return None
    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Has no effect: nothing is recorded."
    return function


for _name in ("add_mlhub_insight", "log_cache_bypass", "log_chromium_event_internal",
              "log_compilation_event", "log_draft_export_usage", "log_export_usage",
              "log_torch_jit_trace_exportability", "log_torchscript_usage",
              "log_trace_structured_event", "log_triton_builds",
              "maybe_upload_prof_stats_to_manifold", "record_chromium_event_internal",
              "set_pytorch_distributed_envs_from_justknobs", "signpost_event", "upload_graph",
              "get_mast_job_name_version",
              "find_compile_subproc_binary",
              "profiler_allow_cudagraph_cupti_lazy_reinit_cuda12"):
    globals()[_name] = _nothing(_name)


def is_fb_unit_test() -> bool:
    """False."""
    return False


def get_default_numa_options() -> None:
    """None: processes run on all cores."""


check_if_torch_exportable = full_aoti_runtime_assert = is_fb_unit_test


def export_training_ir_rollout_check() -> bool:
    """True."""
    return True


def compile_time_strobelight_meta(phase_name: str) -> Callable[[_F], _F]:
    """A decorator that changes nothing."""
    return lambda function: function


def deprecated() -> Callable[[_F], _F]:
    """A decorator that changes nothing."""
    return lambda function: function


def max_clock_rate() -> float:
    """The clock rate of the accelerator; AssertionError, as there is none."""
    return importlib.import_module("flambeau.cuda").clock_rate()
