"""A stage's flat graph as nested modules."""
from __future__ import annotations

import flambeau
from flambeau import nn
from flambeau.distributed.pipelining import SplitPoint, pipeline


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("kept", flambeau.ones(3))
        self.register_buffer("lost", flambeau.ones(3), persistent=False)

    def forward(self, x):
        return flambeau.relu(self.linear(x)) * self.kept + self.lost


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Inner(), nn.Sequential(Inner(), nn.Tanh())

    def forward(self, x):
        return self.second(self.first(x) + 1)


def stages():
    flambeau.manual_seed(0)
    model, x = Outer(), flambeau.randn(2, 3)
    pipe = pipeline(model, (x,), split_spec={"second": SplitPoint.BEGINNING})
    return model, x, [pipe.get_stage_module(i) for i in range(2)]


def test_modules_have_their_names_and_values():
    model, _, parts = stages()
    names = {name for part in parts for name, _ in part.named_parameters()}
    assert names == {name for name, _ in model.named_parameters()}
    assert dict(parts[0].named_buffers()).keys() == {"first.kept", "first.lost"}
    assert isinstance(parts[1].get_submodule("second.0.linear"), nn.Module)


def test_stages_compute_what_the_model_does():
    model, x, parts = stages()
    flambeau.testing.assert_close(parts[1](parts[0](x)), model(x))
    with flambeau.no_grad():
        parts[0].get_parameter("first.linear.weight").zero_()
    assert not flambeau.equal(parts[0](x), stages()[2][0](x))
