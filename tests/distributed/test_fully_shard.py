import pytest

import flambeau as torch
from flambeau.distributed import _functional_collectives as functional
from flambeau.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard


def test_one_process_keeps_the_whole_module():
    model = torch.nn.Linear(2, 3)
    weight = model.weight
    assert fully_shard(model) is model and isinstance(model, (FSDPModule, torch.nn.Linear))
    assert model.weight is weight and model(torch.ones(1, 2)).shape == (1, 3)
    with pytest.raises(NotImplementedError, match="autocast"):
        fully_shard(torch.nn.Linear(1, 1),
                    mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))


def test_collectives_of_one_process_keep_gradients(alone):
    x = torch.ones(2, requires_grad=True)
    y = functional.wait_tensor(functional.all_reduce(x, "sum", [0]))
    y.sum().backward()
    assert y is not x and torch.equal(x.grad, torch.ones(2))
