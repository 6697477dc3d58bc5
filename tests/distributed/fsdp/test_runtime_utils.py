"""When parameters are gathered and given back, and gradients shared."""
import pytest
from fsdp_cases import network, wrapped

import flambeau as torch
from flambeau import nn
from flambeau.distributed.fsdp import FullyShardedDataParallel as FSDP
from flambeau.distributed.fsdp import MixedPrecision, ShardingStrategy
from flambeau.distributed.fsdp._common_utils import HandleTrainingState, TrainingState


def test_states_of_a_pass(alone):
    seen = []

    class Watching(nn.Linear):
        def forward(self, x):
            seen.append((model.training_state, model._handle._training_state))
            return super().forward(x)
    model = wrapped(Watching(2, 2))
    out = model(torch.ones(1, 2))
    assert seen == [(TrainingState.FORWARD_BACKWARD, HandleTrainingState.FORWARD)]
    assert model.training_state is TrainingState.IDLE
    out.register_hook(lambda g: seen.append(model.training_state))
    out.sum().backward()
    assert seen[1] is TrainingState.FORWARD_BACKWARD
    assert (model.training_state, model._handle._training_state) == (
        TrainingState.IDLE, HandleTrainingState.IDLE)


def test_the_outermost_is_the_root(alone):
    inner = wrapped(nn.Linear(2, 2))
    model = wrapped(nn.Sequential(inner, nn.Linear(2, 2)))
    assert model._is_root is None
    model(torch.ones(1, 2))
    assert model._is_root is True and inner._is_root is False


@pytest.mark.parametrize("options", [{}, {"use_orig_params": True}])
def test_gradients_are_those_of_the_module(alone, options):
    torch.manual_seed(0)
    plain = network()
    model = wrapped(network(), **options)
    model.load_state_dict(plain.state_dict())
    x = torch.randn(3, 4)
    for m in (plain, model):
        m(x).pow(2).sum().backward()
        m(2 * x).sum().backward()                   # they add up
    with FSDP.summon_full_params(model, with_grads=bool(options)):
        if options:
            for p, q in zip(model.parameters(), plain.parameters()):
                torch.testing.assert_close(p.grad, q.grad)
    flat = torch.cat([p.grad.flatten() for p in plain.parameters()])
    own = torch.cat([p.grad.flatten() for p in model.parameters()])
    torch.testing.assert_close(own, flat)


def test_inputs_and_buffers_are_cast(alone):
    seen = []

    class Watching(nn.BatchNorm1d):
        def forward(self, x, other):
            seen.append((x.dtype, other.dtype, self.weight.dtype, self.running_mean.dtype))
            return x * self.weight
    model = wrapped(Watching(2), mixed_precision=MixedPrecision(
        torch.float16, torch.float32, torch.bfloat16, _module_classes_to_ignore=()),
        sharding_strategy=ShardingStrategy.NO_SHARD)
    out = model(torch.ones(3, 2), other=torch.arange(3))
    assert seen == [(torch.float16, torch.int64, torch.float16, torch.bfloat16)]
    assert out.dtype is torch.float16
