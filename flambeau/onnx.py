"""Export to ONNX is not there: `export` says so; nothing is ever being exported."""
from __future__ import annotations

from typing import Any

__all__ = ["export", "is_in_onnx_export"]


def is_in_onnx_export() -> bool:
    """Is a model being exported? Never."""
    return False


def export(model: Any, args: Any = (), f: Any = None, **options: Any) -> Any:
    """NotImplementedError: flambeau writes no ONNX files."""
    raise NotImplementedError("torch.onnx.export: flambeau writes no ONNX files. Save the "
                              "state_dict and export it with PyTorch, which reads the file")
