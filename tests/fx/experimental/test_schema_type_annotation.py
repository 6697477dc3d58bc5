"""Nodes have the types of what they give."""
import flambeau as torch
from flambeau import nn
from flambeau.fx import symbolic_trace
from flambeau.fx.experimental.schema_type_annotation import AnnotateTypesWithSchema


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.scale = nn.Linear(2, 2), nn.Parameter(torch.ones(2))

    def forward(self, x):
        return nn.functional.relu(self.layer(x) * self.scale)


def test_functions_modules_and_attributes():
    typed = AnnotateTypesWithSchema(symbolic_trace(Net())).transform()
    kinds = {n.name: n.type for n in typed.graph.nodes}
    assert kinds["scale"] is kinds["relu"] is torch.Tensor and kinds["mul"] is None
    assert "relu : torch.Tensor = " in typed.code
    bare = AnnotateTypesWithSchema(symbolic_trace(Net()), False, False, False).transform()
    assert all(n.type is None for n in bare.graph.nodes)
