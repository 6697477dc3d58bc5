"""Optimizations for inference leave what a module computes."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.fx import symbolic_trace
from flambeau.fx.experimental import optimization


@pytest.mark.parametrize("layers, shape", [
    ((nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2)), (1, 1, 3, 3)),
    ((nn.Conv1d(1, 2, 2), nn.BatchNorm1d(2)), (1, 1, 3)),
    ((nn.Linear(3, 2), nn.BatchNorm1d(2)), (4, 3))])
def test_normalisation_becomes_part_of_the_layer_before(layers, shape):
    model = nn.Sequential(*layers, nn.ReLU())
    model(torch.randn(5, *shape[1:]))               # statistics
    model.eval()
    fused, x = optimization.fuse(model), torch.randn(shape)
    assert [name for name, _ in fused.named_children()] == ["0", "2"]
    torch.testing.assert_close(fused(x), model(x))


def test_a_result_that_others_use_is_not_changed():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv1d(1, 1, 1), nn.BatchNorm1d(1)

        def forward(self, x):
            y = self.conv(x)
            return self.norm(y) + y
    assert "norm" in dict(optimization.fuse(Twice().eval()).named_children())


def test_dropout_is_left_out_and_parts_are_modules():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(), nn.ReLU())
    assert "Dropout" not in str(optimization.remove_dropout(model).graph)
    nodes = list(symbolic_trace(model).graph.nodes)
    part = optimization.extract_subgraph(model, [nodes[1]], [nodes[0]], [nodes[1]])
    x = torch.randn(1, 2)
    torch.testing.assert_close(part(x)[0], model[0](x))
