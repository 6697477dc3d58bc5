"""Numbers of types and modes; there is no export."""
import pytest

import flambeau as torch


def test_numbers_of_types_and_modes():
    assert torch.onnx.TensorProtoDataType.FLOAT == 1
    assert torch.onnx.TensorProtoDataType.FLOAT8E5M2FNUZ == 20
    assert int(torch.onnx.TrainingMode.TRAINING) == 2
    assert int(torch.onnx.OperatorExportTypes.ONNX_FALLTHROUGH) == 3
    assert not torch.onnx.is_in_onnx_export()
    with pytest.raises(NotImplementedError, match="writes no ONNX files"):
        torch.onnx.export(None)
