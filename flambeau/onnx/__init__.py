"""What programs use of `torch.onnx` besides `export`: flambeau writes no ONNX files.

Packages register how their ops are written to ONNX when they are imported, and ask whether an
export is going on. The first is kept, the second is always False; `export` says what to do instead.
"""
from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flambeau.onnx import errors
from flambeau.onnx.errors import OnnxExporterError

__all__ = ["OnnxExporterError", "errors", "export", "is_in_onnx_export", "ops"]

_NAME = re.compile(r"[a-zA-Z][\w.]*::[\w.]+")
_symbolic: dict[tuple[str, int], Callable[..., Any]] = {}


class TrainingMode(enum.IntEnum):
    """How a model is exported: for use, as it stands, or for training."""

    EVAL, PRESERVE, TRAINING = range(3)


class OperatorExportTypes(enum.IntEnum):
    """What becomes of ops that ONNX does not have."""

    ONNX, ONNX_ATEN, ONNX_ATEN_FALLBACK, ONNX_FALLTHROUGH = range(4)


class TensorProtoDataType(enum.IntEnum):
    """The numbers of types of elements in ONNX files."""

    (UNDEFINED, FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE,
     UINT32, UINT64, COMPLEX64, COMPLEX128, BFLOAT16, FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2,
     FLOAT8E5M2FNUZ) = range(21)


def is_in_onnx_export() -> bool:
    """Is a model being exported? Never."""
    return False


def export(model: Any, args: Any = (), f: Any = None, *, kwargs: dict[str, Any] | None = None,
           verbose: bool | None = None, input_names: Sequence[str] | None = None,
           output_names: Sequence[str] | None = None, opset_version: int | None = None,
           dynamo: bool = True, external_data: bool = True, dynamic_shapes: Any = None,
           custom_translation_table: dict[Any, Any] | None = None, report: bool = False,
           optimize: bool = True, verify: bool = False, profile: bool = False,
           dump_exported_program: bool = False, artifacts_dir: Any = ".",
           export_params: bool = True, keep_initializers_as_inputs: bool = False,
           dynamic_axes: Any = None, training: TrainingMode = TrainingMode.EVAL,
           operator_export_type: OperatorExportTypes = OperatorExportTypes.ONNX,
           do_constant_folding: bool = True, custom_opsets: Mapping[str, int] | None = None,
           export_modules_as_functions: Any = False, autograd_inlining: bool = True) -> Any:
    """NotImplementedError: flambeau writes no ONNX files."""
    raise NotImplementedError("torch.onnx.export: flambeau writes no ONNX files. Save the "
                              "state_dict and export it with PyTorch, which reads the file")


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable[..., Any],
                                opset_version: int) -> None:
    """Say how an op is written from a version of ONNX's ops on: `symbolic_fn(graph, *inputs)`."""
    if not _NAME.fullmatch(symbolic_name):
        raise OnnxExporterError(
            f"Failed to register operator {symbolic_name}. The symbolic name must match the format "
            "domain::name, and should start with a letter and contain only alphanumeric characters")
    _symbolic[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Take back what `register_custom_op_symbolic` was told."""
    _symbolic.pop((symbolic_name, opset_version), None)


def __getattr__(name: str) -> Any:
    if name in ("operators", "ops", "symbolic_helper", "symbolic_opset11"):
        import importlib
        return importlib.import_module(f"flambeau.onnx.{name}")
    raise AttributeError(f"module 'torch.onnx' has no attribute {name!r}")
