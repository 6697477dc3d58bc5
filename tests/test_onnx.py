"""What there is of torch.onnx: no export, but what packages do when they are imported."""

import pytest

import flambeau as torch
from flambeau.onnx import operators, ops, symbolic_helper, symbolic_opset11


class Graph:
    def op(self, name, *inputs, **attributes):
        return name, inputs, attributes


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


def test_nodes():
    g = Graph()
    assert symbolic_opset11.select(g, "v", 1, "i") == ("Gather", ("v", "i"), {"axis_i": 1})
    assert symbolic_opset11.unsqueeze(g, "v", 0) == ("Unsqueeze", ("v",), {"axes_i": [0]})
    assert symbolic_opset11.squeeze(g, "v") == ("Squeeze", ("v",), {})


def test_placeholders():
    x = torch.ones(2, 3)
    assert operators.shape_as_tensor(x).tolist() == [2, 3]
    assert operators.reshape_from_tensor_shape(x, torch.tensor([3, 2])).shape == (3, 2)
    a, b = ops.symbolic_multi_out("d::Op", (x,), dtypes=(torch.float32, 7), shapes=((2,), ()))
    assert torch.equal(a, torch.zeros(2)) and torch.equal(b, torch.tensor(0))
    with pytest.raises(ValueError, match="Unsupported attribute type for k"):
        ops.symbolic("d::Op", (), {"k": object()}, dtype=1, shape=())
    with pytest.raises(ValueError, match="Number of dtypes must match number of shapes"):
        ops.symbolic_multi_out("d::Op", (), dtypes=(1,), shapes=())


def test_numbers_of_types_and_modes():
    assert torch.onnx.TensorProtoDataType.FLOAT == 1
    assert torch.onnx.TensorProtoDataType.FLOAT8E5M2FNUZ == 20
    assert int(torch.onnx.TrainingMode.TRAINING) == 2
    assert int(torch.onnx.OperatorExportTypes.ONNX_FALLTHROUGH) == 3
    assert not torch.onnx.is_in_onnx_export()
    with pytest.raises(NotImplementedError, match="writes no ONNX files"):
        torch.onnx.export(None)
