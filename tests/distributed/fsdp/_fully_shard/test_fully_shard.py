"""`fully_shard`: training in pieces is training in one process; and what modules can do then."""
from __future__ import annotations

import copy

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed import checkpoint as dcp
from flambeau.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.fsdp import (
    CPUOffloadPolicy,
    DataParallelMeshDims,
    FSDPModule,
    MixedPrecisionPolicy,
    UnshardHandle,
    fully_shard,
    register_fsdp_forward_method,
    share_comm_ctx,
)
from flambeau.distributed.tensor import DTensor, Replicate, Shard
from flambeau.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from flambeau.distributed.tensor.placement_types import _StridedShard
from flambeau.testing._internal.distributed.fake_pg import FakeStore
from flambeau.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width=5):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 7), nn.Linear(7, width, bias=False)
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return x + self.scale * self.down(torch.tanh(self.up(self.norm(x))))


class Model(nn.Module):
    """No size is a multiple of the number of processes; one weight is used twice."""

    def __init__(self, recompute=None):
        super().__init__()
        self.table = nn.Embedding(11, 5)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(5, 11, bias=False)
        self.head.weight = self.table.weight
        self.recompute = recompute

    def forward(self, words):
        x = self.table(words)
        for block in self.blocks:
            x = block(x) if self.recompute is None else checkpoint(
                block, x, use_reentrant=self.recompute)
        return self.head(x)


def sharded(model, **options):
    for block in model.blocks:
        fully_shard(block, **options)
    return fully_shard(model, **options)


def whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def close(found, expected, **options):
    torch.testing.assert_close(whole(found), expected, **{"rtol": 1e-4, "atol": 1e-6, **options})


def words(step, rank=None):
    """What all processes have at a step, or one of them."""
    size = dist.get_world_size()
    found = torch.arange(size * 8).view(size * 2, 4) * (3 + step) % 11
    return found if rank is None else found.chunk(size)[rank]


def loss(model, given):
    return nn.functional.cross_entropy(model(given).flatten(0, 1), (given * 5 % 11).flatten())


def pair(recompute=None, **options):
    torch.manual_seed(0)
    single = Model()
    model = copy.deepcopy(single)
    model.recompute = recompute
    return single, sharded(model, **options)


def training(rank, options, recompute):
    single, model = pair(recompute, **options)
    optimizers = [torch.optim.Adam(m.parameters(), 0.05) for m in (single, model)]
    assert all(isinstance(p, DTensor) and isinstance(p, nn.Parameter) for p in model.parameters())
    assert model.head.weight is model.table.weight
    for step in range(3):
        loss(single, words(step)).backward()
        mine = loss(model, words(step, rank))
        mine.backward()
        for (name, p), q in zip(model.named_parameters(), single.parameters()):
            assert isinstance(p, DTensor) and p.grad.placements == p.placements, name
            close(p.grad, q.grad)
        norms = [torch.nn.utils.clip_grad_norm_(m.parameters(), 0.3) for m in (model, single)]
        close(*norms)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    with torch.no_grad():
        close(model(words(5)), single(words(5)), atol=1e-4)
        close(model(words(6)), single(words(6)), atol=1e-4)
    kept = options.get("reshard_after_forward") is False
    assert all(isinstance(p, DTensor) is not kept for p in model.blocks.parameters())
    state = model.state_dict()
    assert all(isinstance(v, DTensor) for v in state.values())
    for name, value in single.state_dict().items():
        close(state[name], value, atol=1e-4)


def accumulating(rank):
    """Passes that are not shared, two before one step, and gradients that are kept."""
    single, model = pair()
    for step in range(3):
        model.set_requires_gradient_sync(step == 2)
        model.set_is_last_backward(step == 2)
        loss(model, words(step, rank)).backward()
        loss(single, words(step)).backward()
        if step < 2:
            assert all(p.grad is None for p in model.parameters())
    for p, q in zip(model.parameters(), single.parameters()):
        close(p.grad, q.grad)
    losses = [loss(model, words(s, rank)) for s in (3, 4)]      # two graphs at once
    sum(losses).backward()
    sum(loss(single, words(s)) for s in (3, 4)).backward()
    for p, q in zip(model.parameters(), single.parameters()):
        close(p.grad, q.grad)


def two_dimensional(rank):
    """Copies of pieces; and pieces of what tensor parallelism has cut."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("copies", "pieces"))
    single, model = pair(mesh=mesh)
    assert model.table.weight.placements == (Replicate(), Shard(0))
    loss(single, words(0)).backward()
    loss(model, words(0, rank)).backward()
    for p, q in zip(model.parameters(), single.parameters()):
        close(p.grad, q.grad)
    model.zero_grad()
    for step in range(2):
        model.set_requires_all_reduce(step == 1)
        loss(model, words(step, rank)).backward()
    loss(single, words(1)).backward()
    for p, q in zip(model.parameters(), single.parameters()):
        close(p.grad, q.grad)
    named = fully_shard(nn.Linear(8, 4), mesh=mesh, dp_mesh_dims=DataParallelMeshDims(
        shard=("copies", "pieces")))
    assert named.weight.placements == (Shard(0),) and named.weight.to_local().shape == (1, 8)
    torch.manual_seed(0)
    single = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
    model = copy.deepcopy(single)
    parallelize_module(model, mesh["pieces"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    for layer in (model[0], model):
        fully_shard(layer, mesh=mesh["copies"])
    assert model[0].weight.placements == (_StridedShard(0, split_factor=2), Shard(0))
    assert model[2].weight.placements == (Shard(0), Shard(1))
    optimizers = [torch.optim.AdamW(m.parameters(), 0.1) for m in (single, model)]
    for step in range(2):
        x = torch.arange(16.0).view(4, 4) / (7 + step)
        single(x).pow(2).mean().backward()
        model(x.chunk(2)[mesh.get_local_rank("copies")]).pow(2).mean().backward()
        close(*[torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0) for m in (model, single)])
        for p, q in zip(model.parameters(), single.parameters()):
            close(p.grad, q.grad)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    for p, q in zip(model.parameters(), single.parameters()):
        close(p, q)


def checkpoints(rank, folder):
    """What is saved is loaded into other pieces, and into one process."""
    single, model = pair()
    optimizer = torch.optim.AdamW(model.parameters(), 0.05)
    loss(model, words(0, rank)).backward()
    optimizer.step()
    names = ("model", "optimizer")
    state = dict(zip(names, get_state_dict(model, optimizer)))
    dcp.save(state, checkpoint_id=folder)
    before = [whole(p).clone() for p in model.parameters()]
    other = sharded(Model(), mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    again = torch.optim.AdamW(other.parameters(), 0.05)
    state = dict(zip(names, get_state_dict(other, again)))
    dcp.load(state, checkpoint_id=folder)
    set_state_dict(other, again, model_state_dict=state["model"],
                   optim_state_dict=state["optimizer"])
    for p, b in zip(other.parameters(), before):
        close(p, b, rtol=0, atol=0)
    for m, o in ((model, optimizer), (other, again)):
        m.zero_grad()
        loss(m, words(1, rank)).backward()
        o.step()
    for p, q in zip(model.parameters(), other.parameters()):
        close(p, whole(q), rtol=0, atol=0)
    full = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    assert not any(isinstance(v, DTensor) for v in full.values())
    single.load_state_dict(full)
    with torch.no_grad():
        close(model(words(2)), single(words(2)))
    third = sharded(Model())
    set_model_state_dict(third, full if rank == 0 else {}, options=StateDictOptions(
        full_state_dict=True, broadcast_from_rank0=True))
    for p, q in zip(third.parameters(), single.parameters()):
        close(p, q, rtol=0, atol=0)


def by_hand(rank):
    """Gathering, prefetching, hooks, methods, groups of modules, parameters nobody manages."""
    single, model = pair()
    for block, after in zip(model.blocks, model.blocks[1:]):
        block.set_modules_to_forward_prefetch([after])
        after.set_modules_to_backward_prefetch([block])
    loss(single, words(0)).backward()
    loss(model, words(0, rank)).backward()
    for p, q in zip(model.parameters(), single.parameters()):
        close(p.grad, q.grad)
    block = model.blocks[0]
    handle = block.unshard(async_op=True)
    assert isinstance(handle, UnshardHandle)
    handle.wait()
    assert not isinstance(block.up.weight, DTensor) and block.up.weight.is_leaf
    close(block.up.weight, single.blocks[0].up.weight)
    block.reshard()
    assert isinstance(block.up.weight, DTensor)
    model.double()
    close(loss(model, words(0)), loss(single.double(), words(0)))
    model.float(), single.float()

    layers = [nn.Linear(3, 3) for _ in range(2)]
    for layer in layers:
        for p in layer.parameters():
            dist.broadcast(p.detach(), 0)
    both, kept = copy.deepcopy(layers), layers[1].bias
    root = nn.Sequential(*layers)
    fully_shard(layers, ignored_params={kept})
    fully_shard(root)
    assert root[1].bias is kept
    root.set_gradient_divide_factor(1.0)
    for layer in layers:
        layer.set_gradient_divide_factor(1.0)
    layers[0].set_all_reduce_hook(lambda flat: flat.mul_(2))
    root(torch.ones(2, 3)).sum().backward()
    nn.Sequential(*both)(torch.ones(2, 3)).sum().backward()
    close(root[0].weight.grad, both[0].weight.grad * dist.get_world_size() * 2)

    class Named(nn.Linear):
        def generate(self, x):
            return nn.functional.linear(x, self.weight, self.bias)
    torch.manual_seed(0)
    named = fully_shard(Named(3, 3))
    register_fsdp_forward_method(named, "generate")
    close(named.generate(torch.ones(1, 3)), named(torch.ones(1, 3)))
    share_comm_ctx([named, model])
    named.reset_iter_state()


def unused(rank):
    """A layer that one process uses only: it waits for nobody where zeros take part."""
    torch.manual_seed(0)
    model = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)})

    class Either(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = model

        def forward(self, x, second):
            return self.parts["b"](x) if second else self.parts["a"](x)
    either = fully_shard(Either())
    either.set_reduce_scatter_unused_params(True)
    either(torch.ones(1, 3), rank == 1).sum().backward()
    for name in "ab":
        close(model[name].bias.grad, torch.full((3,), 1 / dist.get_world_size()))


BF16 = MixedPrecisionPolicy(torch.bfloat16, torch.float32, output_dtype=torch.float64)


def mixed_precision(rank):
    torch.manual_seed(0)
    single = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
    model = copy.deepcopy(single)
    fully_shard(model, mp_policy=BF16)
    x = torch.randn(2, 4)
    single.bfloat16()
    found = model(x)
    assert found.dtype is torch.float64
    found.sum().backward()
    single(x.bfloat16()).double().sum().backward()
    for p, q in zip(model.parameters(), single.parameters()):
        assert p.dtype is p.grad.dtype is torch.float32
        close(p.grad, q.grad.float(), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("size, options, recompute", [
    (2, {}, None), (3, {"reshard_after_forward": False}, None), (2, {}, False), (2, {}, True),
    (4, {"reshard_after_forward": 2}, None), (2, {"offload_policy": CPUOffloadPolicy()}, None)])
def test_training_is_that_of_one_process(processes, size, options, recompute):
    processes(training, options, recompute, size=size)


@pytest.mark.parametrize("work, size", [(accumulating, 2), (two_dimensional, 4), (by_hand, 2),
                                        (unused, 2), (mixed_precision, 2)])
def test_several_processes(processes, work, size):
    processes(work, size=size)


def test_checkpoints(processes, tmp_path):
    processes(checkpoints, str(tmp_path / "checkpoint"), size=2)


# ---- without communication ----------------------------------------------------------------------

@pytest.fixture
def mesh():
    """Process 1 of 4, the others imagined."""
    dist.init_process_group("fake", store=FakeStore(), rank=1, world_size=4)
    yield init_device_mesh("cpu", (4,))
    dist.destroy_process_group()


def test_one_process_keeps_everything(alone):
    model = nn.Linear(2, 3)
    expected = model(torch.ones(1, 2)).detach()
    assert fully_shard(model) is model and isinstance(model, FSDPModule)
    assert isinstance(model, nn.Linear) and type(model).__name__ == "FSDPLinear"
    assert torch.equal(model(torch.ones(1, 2)), expected)
    plain = type(model)(2, 3)
    assert type(plain) is nn.Linear and type(plain.weight) is nn.Parameter


def test_pieces(mesh):
    model = fully_shard(nn.Linear(6, 6))
    assert model.weight.to_local().shape == (2, 6) and model.weight.shape == (6, 6)
    model = fully_shard(nn.Linear(8, 4), shard_placement_fn=lambda p: Shard(-1))
    assert model.weight.placements == (Shard(1),) and model.bias.placements == (Shard(0),)
    with torch.device("meta"):
        model = nn.Linear(6, 6)
    fully_shard(model)
    assert model.weight.to_local().is_meta
    with pytest.raises(RuntimeError, match="still on meta device: \\['weight', 'bias'\\]"):
        model(torch.ones(1, 6))
    model.to_empty(device="cpu")
    model.reset_parameters()
    assert model(torch.ones(1, 6)).shape == (1, 6)
    layer = fully_shard(nn.Linear(6, 6), reshard_after_forward=2)
    root = fully_shard(nn.Sequential(layer))
    root(torch.ones(1, 6)).sum()
    assert layer.weight.placements == (Replicate(), Shard(0)) and layer.weight.shape == (6, 6)
    assert layer.weight.to_local().shape == (3, 6)


class Scalar(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Parameter(torch.ones(()))


def inner_after_outer(mesh):
    model = fully_shard(nn.Sequential(nn.Linear(4, 4)))
    fully_shard(model[0])


def root_after_inner(mesh):
    model = nn.Sequential(fully_shard(nn.Linear(4, 4)))
    fully_shard(model)
    model[0](torch.ones(4))
    model(torch.ones(4))


@pytest.mark.parametrize("call, error, text", [
    (lambda m: fully_shard(nn.ModuleList()), ValueError, "do not implement forward"),
    (lambda m: fully_shard(fully_shard(nn.Linear(2, 2))), AssertionError, "only be applied"),
    (lambda m: fully_shard(Scalar()), ValueError, "doesn't support scalar parameters. Change s"),
    (lambda m: fully_shard(nn.Linear(2, 2), mesh=init_device_mesh("cpu", (1, 2, 2))), ValueError,
     "expects a 1D or 2D DeviceMesh"),
    (lambda m: fully_shard(nn.Linear(2, 2), mesh=init_device_mesh("cpu", (2, 2))), AssertionError,
     "with mesh_dim_names specified"),
    (lambda m: fully_shard(nn.Linear(2, 2), reshard_after_forward=3), ValueError, "a factor of 4"),
    (lambda m: fully_shard(nn.Linear(2, 2), reshard_after_forward="a"), ValueError, "bool or an"),
    (lambda m: fully_shard(nn.Linear(6, 4), shard_placement_fn=lambda p: Shard(p.ndim - 1)),
     NotImplementedError, "uneven sharding on dim 1"),
    (lambda m: fully_shard(nn.Linear(6, 4), shard_placement_fn=lambda p: 3), ValueError,
     "Invalid shard_placement_fn result: 3"),
    (inner_after_outer, RuntimeError, "inner modules before outer ones"),
    (root_after_inner, RuntimeError, "forward through the root module first"),
    (lambda m: copy.deepcopy(fully_shard(nn.Linear(2, 2))), AssertionError, "support deepcopy"),
    (lambda m: fully_shard(nn.Linear(2, 2)).set_modules_to_forward_prefetch([nn.Linear(1, 1)]),
     ValueError, "Expects FSDPModule"),
    (lambda m: register_fsdp_forward_method(fully_shard(nn.Linear(2, 2)), "zz"), ValueError,
     "does not have a method zz"),
    (lambda m: share_comm_ctx([nn.Linear(1, 1)]), ValueError, "Expects list of FSDPModules"),
    (lambda m: fully_shard(nn.Linear(2, 2)).set_reduce_scatter_max_input_buffers(0), ValueError,
     "positive int"),
])
def test_errors(mesh, call, error, text):
    with pytest.raises(error, match=text):
        call(mesh)
