"""How ops are written to ONNX is registered."""
import pytest

import flambeau as torch
from flambeau.onnx import symbolic_helper


def test_ways_of_writing_ops_are_registered():
    @symbolic_helper.parse_args("v", "i", "f")
    def written(g, x, dim, scale):
        return dim, scale
    torch.onnx.register_custom_op_symbolic("own::op", written, 11)
    torch.onnx.unregister_custom_op_symbolic("own::op", 11)
    torch.onnx.unregister_custom_op_symbolic("own::op", 11)
    assert written(None, "x", 1, 2.0) == (1, 2.0) and written.__name__ == "written"
    with pytest.raises(AssertionError, match=r"number of arguments \(4\) and their descriptors"):
        written(None, 1, 2, 3, 4)
    with pytest.raises(AssertionError, match="can only contain '_outputs' key"):
        written(None, 1, 2, scale=3)
    with pytest.raises(torch.onnx.OnnxExporterError, match="must match the format domain::name"):
        torch.onnx.register_custom_op_symbolic("nope", written, 11)
