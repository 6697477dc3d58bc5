"""How modules are cut, and how their inputs and outputs lie."""
from __future__ import annotations

import warnings

import pytest
from tensor_cases import imagined

import flambeau as torch
from flambeau import nn
from flambeau.distributed.tensor import Replicate, Shard
from flambeau.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    SequenceParallel,
    parallelize_module,
)

R = Replicate()


def test_how_styles_look():
    assert repr(ColwiseParallel()) == (
        "ColwiseParallel(input_layouts=(Replicate(),), output_layouts=(Shard(dim=-1),), "
        "use_local_output=True)")
    assert repr(SequenceParallel()) == "SequenceParallel(sequence_dim=1, use_local_output=False)"
    assert repr(PrepareModuleOutput(output_layouts=R, desired_output_layouts=Shard(0))) == (
        "PrepareModuleOutput(output_layouts=(Replicate(),), desired_output_layouts="
        "(Shard(dim=0),), use_local_output=True)")


@pytest.fixture
def mesh():
    """Process 1 of 2, the other imagined."""
    with imagined(2) as found:
        yield found


class Pair(nn.Module):
    def forward(self, x, y=None):
        return x, y


def test_inputs_and_outputs_are_placed(mesh):
    def prepared(style):
        return parallelize_module(Pair(), mesh, style)
    one = torch.ones(2)
    x, y = prepared(PrepareModuleInput(input_layouts=(Shard(0), None),
                                       desired_input_layouts=(R, None)))(one, one)
    assert x.placements == (R,) and x.shape == (4,) and y is one
    x, y = prepared(PrepareModuleInput(input_kwarg_layouts={"y": Shard(0)},
                                       desired_input_kwarg_layouts={"y": R}))(one, y=one)
    assert x is one and y.placements == (R,)
    x, _ = prepared(PrepareModuleInput(
        input_layouts=(Shard(0), None), desired_input_layouts=(R, None),
        use_local_output=True))(one, 3)
    assert type(x) is torch.Tensor and x.shape == (4,)
    x, _ = prepared(PrepareModuleOutput(output_layouts=(R, None),
                                        desired_output_layouts=(Shard(0), None)))(one)
    assert type(x) is torch.Tensor and x.shape == (1,)
    x, _ = prepared(PrepareModuleInputOutput(
        input_layouts=(Shard(0), None), desired_input_layouts=(R, None),
        output_layouts=(R, None), desired_output_layouts=(Shard(0), None)))(one, one)
    assert x.shape == (2,)
    normed = parallelize_module(nn.LayerNorm(4), mesh, SequenceParallel())(torch.ones(2, 3, 4))
    assert normed.shape == (2, 6, 4) and normed.placements == (Shard(1),)


@pytest.mark.parametrize("call, error, text", [
    (lambda m: ParallelStyle(), TypeError, "abstract"),
    (lambda m: PrepareModuleInput(input_layouts=R), AssertionError, "should not be None"),
    (lambda m: PrepareModuleInput(input_layouts=R, desired_input_layouts=(R, R)), AssertionError,
     "should have same length"),
    (lambda m: PrepareModuleOutput(output_layouts=R, desired_output_layouts=(R, R)),
     AssertionError, "should have same length"),
    (lambda m: parallelize_module(nn.ReLU(), m, ColwiseParallel()), NotImplementedError,
     "ColwiseParallel currently only support nn.Linear and nn.Embedding"),
    (lambda m: parallelize_module(nn.ReLU(), m, 3), TypeError, "<class 'int'> found"),
    (lambda m: parallelize_module(nn.ReLU(), None, ColwiseParallel()), RuntimeError,
     "No device mesh is currently active"),
    (lambda m: parallelize_module(Pair(), m, PrepareModuleInput(
        input_layouts=R, desired_input_layouts=R))(1, 2), ValueError, "have same length"),
    (lambda m: parallelize_module(Pair(), m, PrepareModuleInput(
        input_layouts=R, desired_input_layouts=R))(1), AssertionError, "expecting input"),
    (lambda m: parallelize_module(nn.LayerNorm(2), m, SequenceParallel())([1]), ValueError,
     "to be a torch.Tensor or DTensor"),
])
def test_errors(mesh, call, error, text):
    with pytest.raises(error, match=text), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call(mesh)
