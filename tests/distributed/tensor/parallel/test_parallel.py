"""Modules that several processes share give what they give in one, forward and backward."""
from __future__ import annotations

import copy
import warnings

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from flambeau.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from flambeau.distributed.tensor.parallel.ddp import _pre_dp_module_transform
from flambeau.distributed.tensor.parallel.input_reshard import input_reshard
from flambeau.nn import functional as F
from flambeau.testing._internal.distributed.fake_pg import FakeStore

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


def scores_cut_in_many_ways(rank):
    mesh = init_device_mesh("cpu", (2, 2))
    torch.manual_seed(0)
    targets = torch.tensor([1, 4, -100, 0])
    weight = torch.rand(5)
    for options in ({"reduction": "mean"}, {"reduction": "sum"}, {"reduction": "none"},
                    {"weight": weight}):
        for placements in ([Shard(0), Shard(1)], [R, Shard(1)], [Shard(1), Shard(0)]):
            scores = torch.randn(4, 5)              # no even cut
            whole_scores = scores.clone().requires_grad_()
            expected = F.cross_entropy(whole_scores, targets, **options)
            expected.sum().backward()
            given = distribute_tensor(scores, mesh, placements).requires_grad_()
            rows = [R if p == Shard(1) else p for p in placements]
            options = {k: distribute_tensor(v, mesh) if k == "weight" else v
                       for k, v in options.items()}
            with loss_parallel():
                found = F.cross_entropy(given, distribute_tensor(targets, mesh, rows), **options)
                found.full_tensor().sum().backward()
            options = {k: weight if k == "weight" else v for k, v in options.items()}
            torch.testing.assert_close(found.full_tensor(), expected)
            assert given.grad.placements == tuple(placements)
            torch.testing.assert_close(given.grad.full_tensor(), whole_scores.grad)
    line = init_device_mesh("cpu", (4,))
    x = distribute_tensor(torch.randn(3, 10), line, [Shard(1)]).requires_grad_()
    y = whole(x.detach()).requires_grad_()
    weights = torch.randn(3, 10)
    with loss_parallel():
        found = F.log_softmax(x, 1)
        (found.full_tensor() * weights).sum().backward()
    (F.log_softmax(y, 1) * weights).sum().backward()
    torch.testing.assert_close(found.full_tensor(), F.log_softmax(y, 1))
    torch.testing.assert_close(x.grad.full_tensor(), y.grad)


def under_data_parallelism(rank):
    """Two copies, each of them cut in two."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("copies", "parts"))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
    single = copy.deepcopy(model)
    parallelize_module(model, mesh["parts"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    _pre_dp_module_transform(model)
    assert model[0].weight.shape == (3, 4) and type(model[0].weight) is nn.Parameter
    wrapped = nn.parallel.DistributedDataParallel(model,
                                                  process_group=mesh.get_group("copies"))
    optimizers = [torch.optim.SGD(m.parameters(), 0.1) for m in (wrapped, single)]
    for step in range(2):
        x = torch.arange(16.0).view(4, 4) / (8 + step)
        wrapped(x.chunk(2)[mesh.get_local_rank("copies")]).pow(2).mean().backward()
        single(x).pow(2).mean().backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    part = mesh.get_local_rank("parts")
    torch.testing.assert_close(model[0].weight, single[0].weight.chunk(2)[part])
    torch.testing.assert_close(model[2].weight, single[2].weight.chunk(2, 1)[part])


def pieces_of_what_is_saved(rank):
    mesh = init_device_mesh("cpu", (2,))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
    single = copy.deepcopy(model)
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    input_reshard(model, mesh, 0)
    x = torch.randn(5, 4)
    model(x).sum().backward()
    single(x).sum().backward()
    for p, q in zip(model.parameters(), single.parameters()):
        torch.testing.assert_close(whole(p.grad), q.grad)


@pytest.mark.parametrize("plan, cut_scores, size", [(PLAN, False, 2), (SEQUENCE_PLAN, True, 2),
                                                    (SEQUENCE_PLAN, True, 4)])
def test_training_is_that_of_one_process(processes, plan, cut_scores, size):
    processes(training, plan, cut_scores, size=size)


@pytest.mark.parametrize("work, size", [
    (scores_cut_in_many_ways, 4), (under_data_parallelism, 4), (pieces_of_what_is_saved, 2)])
def test_several_processes(processes, work, size):
    processes(work, size=size)


@pytest.fixture
def mesh():
    """Process 1 of 2, the other imagined."""
    dist.init_process_group("fake", store=FakeStore(), rank=1, world_size=2)
    yield init_device_mesh("cpu", (2,))
    dist.destroy_process_group()


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


@pytest.mark.parametrize("cut, target, error, text", [
    (Shard(0), torch.tensor([0, 1]), ValueError, "exactly one mesh dim to shard tensor dim"),
    (Shard(1), torch.tensor([0, 4]), IndexError, "Target 4 is out of bounds"),
])
def test_errors_of_losses(mesh, cut, target, error, text):
    scores = distribute_tensor(torch.ones(2, 4), mesh, [cut], src_data_rank=None)
    with loss_parallel(), pytest.raises(error, match=text):
        F.cross_entropy(scores, target)
