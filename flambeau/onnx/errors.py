"""What goes wrong when a model is exported to ONNX."""
from __future__ import annotations

__all__ = ["OnnxExporterError"]


class OnnxExporterError(RuntimeError):
    """A model, or the description of an op, that cannot be exported."""
