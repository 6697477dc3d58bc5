"""Nodes of ONNX."""
from flambeau.onnx import symbolic_opset11


class Graph:
    def op(self, name, *inputs, **attributes):
        return name, inputs, attributes


def test_nodes():
    g = Graph()
    assert symbolic_opset11.select(g, "v", 1, "i") == ("Gather", ("v", "i"), {"axis_i": 1})
    assert symbolic_opset11.unsqueeze(g, "v", 0) == ("Unsqueeze", ("v",), {"axes_i": [0]})
    assert symbolic_opset11.squeeze(g, "v") == ("Squeeze", ("v",), {})
