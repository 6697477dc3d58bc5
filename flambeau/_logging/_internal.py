"""Levels of logs by the names of PyTorch's parts."""
from __future__ import annotations

import contextlib
import functools
import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

# The logger of each part.
_LOGS = {"dynamo": "torch._dynamo", "aot": "torch._functorch.aot_autograd",
         "autograd": "torch.autograd", "dynamic": "torch.fx.experimental.symbolic_shapes",
         "inductor": "torch._inductor", "distributed": "torch.distributed",
         "c10d": "torch.distributed.distributed_c10d", "ddp": "torch.nn.parallel.distributed",
         "fsdp": "torch.distributed.fsdp", "dtensor": "torch.distributed.tensor",
         "onnx": "torch.onnx", "export": "torch.export", "torch": "torch", "all": "torch"}
# What compilation would leave behind; the switches are remembered.
_ARTIFACTS = frozenset(
    "bytecode aot_graphs aot_joint_graph ddp_graphs graph graph_code graph_code_verbose "
    "graph_breaks graph_sizes guards recompiles recompiles_verbose trace_source trace_call "
    "trace_bytecode output_code kernel_code schedule perf_hints pre_grad_graphs post_grad_graphs "
    "ir_pre_fusion ir_post_fusion onnx_diagnostics fusion overlap cudagraphs sym_node "
    "compiled_autograd compiled_autograd_verbose cudagraph_static_inputs benchmarking autotuning "
    "graph_region_expansion inductor_metrics hierarchical_compile compute_dependencies caching "
    "loop_ordering loop_tiling auto_chunker autograd_graphs node_runtime_estimation "
    "annotation post_grad_graphs hop_eager".split())
DEFAULT_LOGGING = {"dynamo": logging.INFO, "aot": logging.INFO, "inductor": logging.INFO,
                   "fsdp": logging.INFO, "ddp_graphs": True, "graph_breaks": True, "guards": True,
                   "recompiles": True, "dynamic": logging.INFO}
_enabled: set[str] = set()


def set_logs(*, modules: dict[str, int | bool] | None = None, **settings: Any) -> None:
    """Set the levels of logs: `set_logs(dynamo=logging.DEBUG, graph=True)`.

    Args:
        modules: levels by the names of any loggers.
        settings: levels of the parts of PyTorch, and switches of what compilation leaves behind.
    """
    for name in settings:
        if name not in _LOGS and name not in _ARTIFACTS:
            raise TypeError(f"set_logs() got an unexpected keyword argument '{name}'")
    _enabled.clear()
    for name, value in settings.items():
        if name in _ARTIFACTS:
            if not isinstance(value, bool):
                raise ValueError(f"Expected bool to enable artifact {name}, received {value}")
            _enabled.update([name] * value)
        elif value is not None:
            if value not in logging._levelToName:
                raise ValueError(f"Unrecognized log level for log {name}: {value}, valid level "
                                 f"values are: {','.join(map(str, logging._levelToName))}")
            logging.getLogger(_LOGS[name]).setLevel(value)
    for name, value in (modules or {}).items():
        logging.getLogger(name).setLevel(value)


def _init_logs(log_file_name: str | None = None) -> None:
    """Write the logs of PyTorch's parts to a file too."""
    if log_file_name is not None:
        logging.getLogger("torch").addHandler(logging.FileHandler(log_file_name))


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:
    """The logger of something that compilation leaves behind."""
    if artifact_name not in _ARTIFACTS:
        raise ValueError(f"Artifact name: {artifact_name!r} not registered,please call "
                         f"register_artifact({artifact_name!r}) in torch._logging.registrations.")
    logger = logging.getLogger(f"{module_qname}.__{artifact_name}")
    logger.artifact_name = artifact_name        # type: ignore[attr-defined]
    return logger


def trace_structured(name: str, metadata_fn: Callable[[], Any] = dict, *,
                     payload_fn: Callable[[], Any] = lambda: None, suppress_context: bool = False,
                     expect_trace_id: bool = True, record_logging_overhead: bool = True,
                     compile_id: Any = None) -> None:
    """Has no effect: no trace of a compilation is written."""


dtrace_structured = trace_structured


def get_structured_logging_overhead() -> float | None:
    """None: no trace is written."""


class LazyString:
    """A text that is made when it is shown."""

    def __init__(self, func: Callable[..., str], *args: Any, **kwargs: Any):
        self.func, self.args, self.kwargs = func, args, kwargs

    def __str__(self) -> str:
        return self.func(*self.args, **self.kwargs)


@functools.cache
def warning_once(logger_obj: logging.Logger, *args: Any, **kwargs: Any) -> None:
    """Log a warning, unless the same was logged before."""
    logger_obj.warning(*args, **kwargs)


@contextlib.contextmanager
def hide_warnings(filter_fn: Callable[..., bool] = lambda *args, **kwargs: True) -> Iterator[None]:
    """Inside, only warnings for which `filter_fn` gives True are shown; it is called as
    `warnings.showwarning` is."""
    before = warnings.showwarning

    def show(*args: Any, **kwargs: Any) -> None:
        if filter_fn(*args, **kwargs):
            before(*args, **kwargs)
    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before
