"""Wrappers of modules and optimizers at world size 1 train like what they wrap."""
from __future__ import annotations

import copy

import pytest

import flambeau
from flambeau import nn
from flambeau.distributed import checkpoint
from flambeau.distributed.algorithms import Join
from flambeau.distributed.checkpoint.planner import WriteItemType
from flambeau.distributed.fsdp import FullyShardedDataParallel
from flambeau.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer
from flambeau.futures import Future
from flambeau.nn.parallel import DistributedDataParallel


def train(model, optimizer, steps=3):
    x = flambeau.arange(6.0).reshape(3, 2)
    for _ in range(steps):
        optimizer.zero_grad()
        model(x).pow(2).sum().backward()
        optimizer.step()


@pytest.fixture
def twins():
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    return model, copy.deepcopy(model)


@pytest.mark.parametrize("wrapper", [DistributedDataParallel, FullyShardedDataParallel])
def test_wrapped_modules(alone, twins, wrapper):
    plain, inner = twins
    wrapped = wrapper(inner)
    train(plain, flambeau.optim.SGD(plain.parameters(), lr=0.01))
    train(wrapped, flambeau.optim.SGD(wrapped.parameters(), lr=0.01))
    inside = wrapped.module.state_dict() if wrapper is DistributedDataParallel \
        else wrapped.state_dict()
    assert all(flambeau.equal(inside[name], value) for name, value in plain.state_dict().items())
    assert wrapped.module is inner


def test_zero(alone, twins):
    plain, inner = twins
    optimizer = ZeroRedundancyOptimizer(inner.parameters(), flambeau.optim.Adam, lr=0.1)
    model = DistributedDataParallel(inner)
    with Join([model, optimizer]):
        train(model, optimizer)
    train(plain, flambeau.optim.Adam(plain.parameters(), lr=0.1))
    assert all(flambeau.equal(a, b) for a, b in zip(plain.parameters(), inner.parameters()))
    optimizer.consolidate_state_dict()
    state = optimizer.state_dict()
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_local_steps(twins):
    class Averager:
        step = 0

        def average_parameters(self, params):
            self.step += 1
    averager = Averager()
    optimizer = PostLocalSGDOptimizer(flambeau.optim.SGD(twins[0].parameters(), lr=0.1), averager)
    train(twins[0], optimizer)
    assert averager.step == 3 and optimizer.state_dict()["step"] == 3


def test_communication_hook(alone, twins):
    plain, inner = twins
    model = DistributedDataParallel(inner)

    def double(state, bucket):
        state.append(bucket.index())
        future = Future()
        future.set_result(bucket.buffer() * 2)
        return future
    seen = []
    model.register_comm_hook(seen, double)
    x = flambeau.ones(1, 2)
    model(x).sum().backward()
    plain(x).sum().backward()
    for a, b in zip(plain.parameters(), inner.parameters()):
        assert flambeau.allclose(2 * a.grad, b.grad)
    assert seen == [0]
    with model.no_sync():
        model(x).sum().backward()
    assert seen == [0]
    with pytest.raises(RuntimeError, match="can only be called once"):
        model.register_comm_hook(None, double)


def test_what_is_refused(alone):
    with pytest.raises(RuntimeError, match="doesn't have any parameter that requires a gradient"):
        DistributedDataParallel(nn.Tanh())
    with pytest.raises(NotImplementedError, match="mixed_precision"):
        DistributedDataParallel(nn.Linear(2, 1), mixed_precision=object())
    with pytest.raises(ValueError, match="at least one joinable"):
        Join([])


def test_synchronized_batch_norm_is_for_gpus(alone):
    """Texts of PyTorch, whose CPU build refuses it in the same places."""
    norm = nn.SyncBatchNorm(3)
    with pytest.raises(ValueError, match="SyncBatchNorm expected input tensor to be on GPU or XPU"):
        norm(flambeau.ones(2, 3))
    assert norm.eval()(flambeau.ones(2, 3)).shape == (2, 3)
    with pytest.raises(ValueError, match="SyncBatchNorm layers only work with GPU modules"):
        DistributedDataParallel(nn.Sequential(norm))


def test_no_group(twins):
    for wrapper in (DistributedDataParallel, FullyShardedDataParallel):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            wrapper(twins[0])


def test_checkpoint(tmp_path, twins):
    first, second = twins
    optimizer = flambeau.optim.Adam(first.parameters())
    train(first, optimizer)
    checkpoint.save({"model": first, "step": 3, "lists": [flambeau.ones(2), {"a": "b"}]},
                    checkpoint_id=tmp_path)
    state = {"model": second, "step": 0, "lists": [flambeau.zeros(2), {"a": ""}]}
    checkpoint.load(state, checkpoint_id=tmp_path)
    assert state["step"] == 3 and state["lists"][1] == {"a": "b"}
    assert state["lists"][0].tolist() == [1.0, 1.0]
    assert all(flambeau.equal(a, b) for a, b in zip(first.parameters(), second.parameters()))
    with pytest.raises(checkpoint.CheckpointException, match="Missing key in checkpoint"):
        checkpoint.load({"other": flambeau.ones(1)}, checkpoint_id=tmp_path)
    with pytest.raises(checkpoint.CheckpointException, match="Size mismatch"):
        checkpoint.load({"lists": [flambeau.zeros(3)]}, checkpoint_id=tmp_path)


def test_planners_may_change_what_is_written(tmp_path):
    class Half(checkpoint.DefaultSavePlanner):
        def resolve_data(self, write_item):
            item = super().resolve_data(write_item)
            is_bytes = write_item.type is WriteItemType.BYTE_IO
            return item if is_bytes else item.to(flambeau.float16)
    checkpoint.save({"w": flambeau.tensor([1.0001])}, checkpoint_id=tmp_path, planner=Half())
    state = {"w": flambeau.zeros(1)}
    checkpoint.load(state, checkpoint_id=tmp_path)
    assert state["w"].item() == 1.0
