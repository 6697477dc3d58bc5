"""Reading programs from files."""
import io
import json
import zipfile

import pytest
from export_cases import Network, function

import flambeau as torch
from flambeau import nn
from flambeau.export import Dim, export, load, save


def saved(program):
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    return file


def test_numbers_of_all_kinds_come_back():
    class Held(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.randn(2, 3, dtype=torch.float64))
            self.frozen = nn.Parameter(torch.ones(3), requires_grad=False)
            self.register_buffer("wide", torch.ones(2, dtype=torch.bfloat16))
            self.register_buffer("none", torch.empty(0, 3))
            self.register_buffer("turned", torch.arange(6).reshape(2, 3).t())

        def forward(self, x):
            return (self.w @ x, self.frozen + 1, self.wide * 2, self.none + 1, self.turned + 0)
    program = export(Held(), (torch.ones(3, dtype=torch.float64),))
    found = load(saved(program))
    for name, value in program.state_dict.items():
        other = found.state_dict[name]
        assert torch.equal(other, value) and other.dtype is value.dtype
        assert other.stride() == value.stride() and other.requires_grad == value.requires_grad
        assert type(other) is type(value)
    x = torch.randn(3, dtype=torch.float64)
    for a, b in zip(found.module()(x), program.module()(x)):
        assert torch.equal(a, b)


def test_state_that_runs_change():
    program = export(Network().eval(), (torch.ones(2, 1, 4, 4),),
                     dynamic_shapes=({0: Dim("n", max=8)},))
    found = load(saved(program))
    module = found.module()
    x = torch.randn(5, 1, 4, 4)
    for a, b in zip(module(x), program.module()(x)):
        torch.testing.assert_close(a, b)
    assert module.count == 1


def test_lists_of_tensors_and_numbers():
    def f(x):
        a, b = x.split(2)
        return torch.cat([a, b, a], 0), torch.stack([a, b]).flip([0, 1]), x.to(torch.float64)
    program = function(f, torch.arange(4.0))
    x = torch.randn(4)
    for a, b in zip(load(saved(program)).module()(x), f(x)):
        assert torch.equal(a, b)


def test_example_inputs_come_back():
    program = function(lambda x: x + 1, torch.arange(3.0))
    (x,), kwargs = load(saved(program)).example_inputs
    assert x.tolist() == [0.0, 1.0, 2.0] and kwargs == {}


def test_unknown_ops_are_named():
    file = saved(function(lambda x: x + 1, torch.ones(2)))
    changed = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("models/model.json"):
                data = json.dumps(json.loads(data)).replace(
                    "torch.ops.aten.add.Tensor", "torch.ops.aten.no_such_op.default").encode()
            new.writestr(name, data)
    changed.seek(0)
    with pytest.raises((NotImplementedError, RuntimeError)):
        load(changed)
