"""Modules that several processes share give what they give in one, forward and backward."""
from __future__ import annotations

import copy

import pytest
from tensor_cases import imagined

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import DTensor, Replicate, Shard
from flambeau.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from flambeau.nn import functional as F

R = Replicate()


class Block(nn.Module):
    """A layer of a transformer with a table before and scores after it."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(12, 8)
        self.norm = nn.LayerNorm(8)
        self.q, self.k, self.v = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.o = nn.Linear(8, 8)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
        self.head = nn.Linear(8, 12, bias=False)

    def forward(self, words):
        x = self.table(words)
        y = self.norm(x)
        q, k, v = (f(y).unflatten(-1, (-1, 2)).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        return self.head(x + self.down(F.gelu(self.up(x))))


PLAN = {"table": RowwiseParallel(input_layouts=R), "[qkv]": ColwiseParallel(),
        "o": RowwiseParallel(), "up": ColwiseParallel(), "down": RowwiseParallel(),
        "head": ColwiseParallel(output_layouts=R)}
SEQUENCE_PLAN = {
    "table": RowwiseParallel(input_layouts=R, output_layouts=Shard(1), use_local_output=False),
    "norm": SequenceParallel(), "[qkv]": ColwiseParallel(input_layouts=Shard(1)),
    "o": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
    "up": ColwiseParallel(input_layouts=Shard(1)),
    "down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
    "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1),
                            use_local_output=False)}


def whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def training(rank, plan, cut_scores):
    torch.manual_seed(rank)                         # process 0 has the weights
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = Block()
    for parameter in model.parameters():
        dist.broadcast(parameter.detach(), 0)
    single = copy.deepcopy(model)
    parallelize_module(model, mesh, plan)
    assert model.q.weight.placements == (Shard(0),)
    assert model.q.weight.to_local().shape == (8 // mesh.size(), 8)
    words = torch.arange(8).view(2, 4) * 5 % 12
    targets = torch.arange(8) * 7 % 12
    optimizers = [torch.optim.SGD(m.parameters(), 0.5, momentum=0.5) for m in (model, single)]
    for _ in range(3):
        expected = F.cross_entropy(single(words).view(-1, 12), targets)
        if cut_scores:
            with loss_parallel():
                scores = model(words)
                assert scores.placements == (Shard(2),)
                found = F.cross_entropy(scores.flatten(0, 1), targets)
                found.backward()
        else:
            found = F.cross_entropy(model(words).view(-1, 12), targets)
            found.backward()
        expected.backward()
        torch.testing.assert_close(whole(found), expected, rtol=1e-5, atol=1e-6)
        for p, q in zip(model.parameters(), single.parameters()):
            torch.testing.assert_close(whole(p.grad), q.grad, rtol=1e-4, atol=1e-6)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    for p, q in zip(model.parameters(), single.parameters()):
        torch.testing.assert_close(whole(p), q, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("plan, cut_scores, size", [(PLAN, False, 2), (SEQUENCE_PLAN, True, 2),
                                                    (SEQUENCE_PLAN, True, 4)])
def test_training_is_that_of_one_process(processes, plan, cut_scores, size):
    processes(training, plan, cut_scores, size=size)


@pytest.fixture
def mesh():
    """Process 1 of 2, the other imagined."""
    with imagined(2) as found:
        yield found


def placements(module):
    return {name: p.placements[0] for name, p in module.named_parameters()
            if isinstance(p, DTensor)}


def test_plans_name_modules_by_patterns(mesh):
    layers = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.ModuleList(
        nn.Linear(4, 4, bias=False) for _ in range(3))})
    parallelize_module(layers, mesh, {
        "a": RowwiseParallel(), "b.[02]": ColwiseParallel()})
    assert placements(layers) == {"a.weight": Shard(1), "a.bias": R, "b.0.weight": Shard(0),
                                  "b.2.weight": Shard(0)}
    single = parallelize_module(nn.Linear(4, 4), mesh, {"": ColwiseParallel()})
    assert placements(single) == {"weight": Shard(0), "bias": Shard(0)}
    tables = nn.ModuleDict({"a": nn.Embedding(8, 4), "b": nn.Embedding(8, 4)})
    parallelize_module(tables, mesh, {"a": ColwiseParallel(), "b": RowwiseParallel()})
    assert placements(tables) == {"a.weight": Shard(1), "b.weight": Shard(0)}
    with pytest.warns(UserWarning, match="key 'zzz' could not be resolved"):
        parallelize_module(layers, mesh, {"b.zzz": ColwiseParallel()})
    with pytest.warns(UserWarning, match="No parallelize_plan is provided"):
        assert parallelize_module(layers, mesh) is layers
