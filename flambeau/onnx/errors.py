"""What goes wrong when a model is exported to ONNX."""
from __future__ import annotations

__all__: list[str] = []


class OnnxExporterError(RuntimeError):
    """A model, or the description of an op, that cannot be exported."""
