"""An optimizer of the pieces that this process has."""
import pytest
from shard_cases import deprecated, piece

import flambeau as torch
from flambeau import nn
from flambeau.distributed._shard import sharded_tensor as st
from flambeau.distributed._shard.sharded_optim import ShardedOptimizer

pytestmark = deprecated


def test_pieces_and_parameters_are_updated(alone):
    sharded = st.init_from_local_shards([piece(torch.ones(2), 0), piece(torch.zeros(2), 2)], 4)
    pieces = [shard.tensor.requires_grad_() for shard in sharded.local_shards()]
    plain = nn.Parameter(torch.ones(3))
    optimizer = ShardedOptimizer({"a": sharded, "b": plain}, torch.optim.SGD, 0.5, momentum=0.9)
    assert optimizer.param_groups[0]["params"] == [*pieces, plain]
    assert optimizer.param_groups[0]["momentum"] == 0.9
    (3 * sum(p.sum() for p in (*pieces, plain))).backward()
    optimizer.step()
    assert [p.tolist() for p in (*pieces, plain)] == [[-0.5] * 2, [-1.5] * 2, [-0.5] * 3]
    assert set(optimizer.state) == {*pieces, plain}
    optimizer.zero_grad(set_to_none=False)
    assert not plain.grad.any()
    optimizer.zero_grad()
    assert plain.grad is None


def test_closures_are_called(alone):
    calls = []
    plain = nn.Parameter(torch.ones(1))
    optimizer = ShardedOptimizer({"p": plain}, torch.optim.SGD, lr=0.1)
    optimizer.step(lambda: calls.append(1) or plain.sum())
    assert calls == [1]


def test_what_is_not_there():
    optimizer = ShardedOptimizer({"p": nn.Parameter(torch.ones(1))}, torch.optim.SGD, lr=0.1)
    for call, name in ((optimizer.state_dict, "state_dict"),
                       (lambda: optimizer.load_state_dict({}), "load_state_dict"),
                       (lambda: optimizer.add_param_group({}), "add_param_group")):
        with pytest.raises(NotImplementedError,
                           match=f"ShardedOptimizer {name} not implemented yet!"):
            call()
    with pytest.raises(ValueError, match="optimizer got an empty parameter list"):
        ShardedOptimizer({}, torch.optim.SGD, lr=0.1)
