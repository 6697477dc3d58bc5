"""What happens before and after the passes of a module."""
import warnings

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from flambeau.distributed.fsdp._fully_shard import _fsdp_state as states
from flambeau.distributed.fsdp._fully_shard._fsdp_common import TrainingState


def test_the_first_pass_finds_the_root(alone):
    model = nn.Sequential(fully_shard(nn.Linear(2, 2)), nn.Linear(2, 2))
    fully_shard(model)
    inner, outer = (states._get_module_fsdp_state(m) for m in (model[0], model))
    assert outer._is_root is inner._is_root is None
    model(torch.ones(1, 2))
    assert outer._is_root is True and inner._is_root is False
    assert inner._state_ctx is outer._state_ctx and inner._comm_ctx is outer._comm_ctx
    assert states._get_module_fsdp_state(model[1]) is None
    assert [p._param_fqn for p in inner._fsdp_param_group.fsdp_params] == ["0.weight", "0.bias"]


def test_training_states(alone):
    seen = []

    class Watching(nn.Linear):
        def forward(self, x):
            seen.append(states._get_module_fsdp_state(self)._training_state)
            return super().forward(x)
    model = fully_shard(Watching(2, 2))
    out = model(torch.ones(1, 2))
    out.register_hook(lambda g: seen.append(states._get_module_fsdp_state(model)._training_state))
    out.sum().backward()
    assert seen == [TrainingState.FORWARD, TrainingState.PRE_BACKWARD]
    assert states._get_module_fsdp_state(model)._training_state is TrainingState.IDLE


def test_inputs_and_outputs_are_cast(alone):
    seen = []

    class Watching(nn.Linear):
        def forward(self, x, other, *, key):
            seen.append((x.dtype, other.dtype, key["a"].dtype, self.weight.dtype))
            return {"out": super().forward(x), "int": other}
    args = torch.ones(1, 2), torch.arange(2)
    model = fully_shard(Watching(2, 2), mp_policy=MixedPrecisionPolicy(
        torch.bfloat16, output_dtype=torch.float64))
    found = model(*args, key={"a": torch.ones(1)})
    assert seen == [(torch.bfloat16, torch.int64, torch.bfloat16, torch.bfloat16)]
    assert found["out"].dtype is torch.float64 and found["int"].dtype is torch.int64


def test_views_are_warned_of(alone):
    class View(nn.Linear):
        def forward(self, x):
            return super().forward(x).view(-1)
    model = fully_shard(View(2, 2))
    with pytest.warns(UserWarning, match="returned a view"):
        model(torch.ones(1, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fully_shard(nn.Linear(2, 2))(torch.ones(1, 2))


def test_hooks_of_a_group_run_once(alone):
    modules, seen, running = [nn.Linear(1, 1) for _ in range(3)], [], set()

    def before(module, args, kwargs):
        seen.append(("before", modules.index(module)))
        return args, kwargs

    def after(module, args, output):
        seen.append(("after", modules.index(module)))
        return output
    states._register_group_forward_hooks(modules, before, after, running, lambda x: x)
    x = torch.ones(1, 1)
    for module in modules:
        module(x)
    assert seen == [("before", 0), ("after", 2)] and not running
