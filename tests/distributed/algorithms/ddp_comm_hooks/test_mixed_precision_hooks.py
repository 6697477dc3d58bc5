"""Gradients that travel in another type than the parameters have."""
from __future__ import annotations

import weakref

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed.algorithms.ddp_comm_hooks.mixed_precision_hooks import (
    _AllreduceUpcastHookState,
    _reducer_allreduce_and_upcast_hook,
)


class Precision:
    def __init__(self, reduce_dtype):
        self.reduce_dtype = reduce_dtype


class Wrapper:
    def __init__(self, reduce_dtype):
        self.mixed_precision, self.process_group = Precision(reduce_dtype), dist.group.WORLD


class Bucket:
    """One parameter with its gradient, as the reducer hands them over."""

    def __init__(self, parameter, values):
        self.parameter, self.values = parameter, values

    def buffer(self):
        return self.values

    def set_buffer(self, values):
        self.values = values

    def parameters(self):
        return [self.parameter]

    def gradients(self):
        return [self.values.view_as(self.parameter)]


@pytest.mark.parametrize("travels", [torch.float16, torch.float32, None])
def test_the_parameters_have_their_type_again(alone, travels):
    full = torch.tensor([[1.0, 2.0]])
    parameter = nn.Parameter(full.half())
    parameter._fp_param = full
    bucket, wrapper = Bucket(parameter, torch.tensor([1 / 3, 2.0]).half()), Wrapper(travels)
    state = _AllreduceUpcastHookState(weakref.ref(wrapper), None)
    found = _reducer_allreduce_and_upcast_hook(state, bucket).wait()
    assert found.dtype is (travels or torch.float16) and bucket.buffer() is found
    assert parameter.dtype is parameter.grad.dtype is torch.float32
    assert torch.equal(parameter.detach(), full)
    assert parameter.grad.tolist() == [[torch.tensor(1 / 3).half().item(), 2.0]]


def test_a_state():
    state = _AllreduceUpcastHookState(None, None)
    assert (state.upcast_stream, state.wait_for_stream_enqueued) == (None, False)
