"""What goes wrong with ONNX."""
import pytest

import flambeau as torch
from flambeau.onnx.errors import OnnxExporterError


def test_errors_are_errors_at_run_time():
    assert issubclass(OnnxExporterError, RuntimeError)
    assert torch.onnx.OnnxExporterError is OnnxExporterError
    with pytest.raises(RuntimeError, match=r"^no$"):
        raise OnnxExporterError("no")
