"""Distributed tensors: making, placing and using them. Placements are PyTorch's."""
import copy
import itertools
import pickle

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    full,
    rand,
    zeros,
)
from flambeau.distributed.tensor._utils import (
    ExplicitRedistributionContext,
    compute_local_shape_and_global_offset,
)
from flambeau.distributed.tensor.placement_types import _StridedShard
from flambeau.testing._internal.distributed.fake_pg import FakeStore

R, P = Replicate(), Partial()


@pytest.fixture
def mesh():
    """Process 1 of 4, the others imagined."""
    dist.init_process_group("fake", store=FakeStore(), rank=1, world_size=4)
    yield init_device_mesh("cpu", (4,))
    dist.destroy_process_group()


def put(tensor, mesh, *placements):
    return distribute_tensor(tensor, mesh, placements, src_data_rank=None)


def test_pieces_and_what_is_known_of_the_whole(mesh):
    x = torch.arange(12.0).view(6, 2)
    d = put(x, mesh, Shard(0))
    assert d.shape == (6, 2) and d.stride() == (2, 1) and d.numel() == 12 and d.is_leaf
    assert type(d.to_local()) is torch.Tensor and d.to_local().tolist() == x[2:4].tolist()
    assert d.placements == (Shard(0),) and d.device_mesh is mesh and len(d) == 6
    assert put(x, mesh, Shard(-1)).placements == (Shard(1),)
    assert distribute_tensor(x, mesh).placements == (R,) and distribute_tensor(d, mesh,
                                                                               [Shard(0)]) is d
    assert put(torch.arange(5.0), mesh, Shard(0)).to_local().tolist() == [2.0, 3.0]
    assert put(x, mesh, P).to_local()[0].tolist() == [0.0, 0.25]
    assert repr(put(torch.ones(4), mesh, Shard(0))) == (
        "DTensor(local_tensor=tensor([1.]), device_mesh=DeviceMesh((4,), 'cpu', stride=(1,)), "
        "placements=(Shard(dim=0),))")
    again = pickle.loads(pickle.dumps(d)), copy.deepcopy(d)
    assert all(torch.equal(a.to_local(), d.to_local()) and a.placements == d.placements
               for a in again)
    parameter = nn.Parameter(d)
    assert isinstance(parameter, DTensor) and isinstance(parameter, nn.Parameter)
    assert isinstance(copy.deepcopy(parameter), nn.Parameter) and parameter.requires_grad
    assert full((2, 4), 3.0, device_mesh=mesh, placements=[Shard(1)]).to_local().tolist() == [
        [3.0], [3.0]]
    assert zeros(5, 2, device_mesh=mesh, placements=[Shard(0)]).to_local().shape == (2, 2)
    assert rand(4, 4, device_mesh=mesh, placements=[Shard(0)]).shape == (4, 4)


def test_a_dimension_of_one_element_stays_cut(mesh):
    d = put(torch.ones(1, 2), mesh, Shard(0))
    for found in (d, d.detach(), nn.Parameter(d), d * 2, d + d, d.clone()):
        assert found.placements == (Shard(0),) and found.to_local().shape == (0, 2)
    assert (d + put(torch.ones(8, 2), mesh, Shard(0))).to_local().shape == (2, 2)


def test_local_tensors_become_distributed_ones(mesh):
    local = torch.ones(2, 3, requires_grad=True)
    d = DTensor.from_local(local, mesh, [Shard(0)])
    assert d.shape == (8, 3) and d.requires_grad and not d.is_leaf
    (d * 3).sum().backward()
    assert local.grad.tolist() == [[3.0] * 3] * 2
    assert DTensor.from_local(torch.ones(3, 2).t(), mesh, [Shard(0)]).stride() == (1, 8)
    assert DTensor.from_local(torch.ones(2, 2), mesh, [Shard(0)], shape=torch.Size([7, 2]),
                              stride=(2, 1)).shape == (7, 2)
    both = init_device_mesh("cpu", (2, 2))
    assert DTensor.from_local(torch.ones(2, 2), both, [Shard(0), Shard(0)]).shape == (8, 2)


def test_offsets(mesh):
    both = init_device_mesh("cpu", (2, 2))
    assert compute_local_shape_and_global_offset((7, 4), mesh, [Shard(0)]) == ((2, 4), (2, 0))
    assert compute_local_shape_and_global_offset((2, 4), mesh, [Shard(0)]) == ((1, 4), (1, 0))
    assert compute_local_shape_and_global_offset((7, 4), both, [Shard(0)] * 2) == ((2, 4), (2, 0))
    assert compute_local_shape_and_global_offset(
        (8, 4), both, [_StridedShard(0, split_factor=2), Shard(0)]) == ((2, 4), (4, 0))
    assert [Shard.local_shard_size_and_offset(5, 3, rank) for rank in range(3)] == [
        (2, 0), (2, 2), (1, 4)]


GIVEN = {"S0": Shard(0), "S1": Shard(1), "R": R, "P": P}


@pytest.mark.parametrize("call, placement", [
    ("S0.relu()", "S0"), ("P.relu()", "R"), ("P * 2", "P"), ("P + 2", "R"), ("-P", "P"),
    ("S0.sum()", "P"), ("S0.sum(1)", "S0"), ("S0.mean()", "Pavg"), ("S0.max()", "Pmax"),
    ("S1.sum(0)", "S0"), ("S0.softmax(0)", "R"), ("S0.softmax(1)", "S0"), ("S0.t()", "S1"),
    ("S0.view(64)", "S0"), ("S1.view(2, 4, 8)", "S2"), ("S0.view(4, 2, 8)", "S0"),
    ("S0.unsqueeze(0)", "S1"), ("S0[2:4]", "R"), ("S0[:, 0]", "S0"), ("S0[0]", "R"),
    ("torch.cat([S0, S0])", "R"), ("torch.cat([S0, S0], 1)", "S0"), ("torch.stack([S0, S0])", "S1"),
    ("S0 + R", "S0"), ("R + S1", "S1"), ("S0 + S1", "S0"), ("P + P", "P"), ("P * R", "P"),
    ("torch.maximum(P, P)", "R"), ("S0 @ R", "S0"), ("R @ S1", "S1"), ("S1 @ S0", "P"),
    ("R @ R", "R"), ("S0 @ S1", "S0"), ("P @ S0", "P"), ("S1 @ S1", "S1"),
    ("F.linear(R, S0)", "S1"), ("F.linear(S1, S1)", "P"), ("F.linear(S0, R)", "S0"),
    ("torch.ones_like(P)", "R"), ("torch.zeros_like(S1)", "S1"), ("S0.new_zeros(3, 8)", "R"),
    ("S0.var(0)", "R"), ("S0.cumsum(1)", "S0"), ("F.layer_norm(S1, (8,))", "R"),
    ("S0.prod()", "Pproduct"), ("S0.topk(2, 1)[0]", "S0"), ("S0.clone()", "S0"),
])
def test_placements_of_results(mesh, call, placement):
    values = {name: DTensor.from_local(torch.ones(8, 8), mesh, [P]) if name == "P" else
              put(torch.ones(8, 8), mesh, p) for name, p in GIVEN.items()}
    found = eval(call, {"torch": torch, "F": nn.functional, **values})
    wanted = GIVEN.get(placement) or (Shard(2) if placement == "S2" else Partial(placement[1:]))
    assert found.placements == (wanted,)


def test_an_explicit_context_forbids_hidden_communication(mesh):
    x = put(torch.ones(8, 8), mesh, Shard(0))
    with ExplicitRedistributionContext(), pytest.raises(RuntimeError, match="Implicit redistrib"):
        x.softmax(0)
    with ExplicitRedistributionContext():
        x.softmax(1)
        with ExplicitRedistributionContext(enable=False):
            x.softmax(0)


@pytest.mark.parametrize("call, error, text", [
    (lambda d, m: put(torch.ones(2), m, Shard(0), Shard(0)), ValueError, "the same length as"),
    (lambda d, m: put(torch.ones(2, requires_grad=True) * 2, m, R), RuntimeError, "leaf tensors"),
    (lambda d, m: put(torch.ones(2), m, Shard(2)), IndexError, "Dimension out of range"),
    (lambda d, m: distribute_tensor(d, m, [R]), ValueError, "do you want to call `redistribute`"),
    (lambda d, m: DTensor.from_local(d, m), RuntimeError, "only accepts torch.Tensor"),
    (lambda d, m: DTensor.from_local(torch.ones(2), m, [Shard(3)]), RuntimeError, "greater than"),
    (lambda d, m: DTensor.from_local(torch.ones(2), m, shape=(3,)), RuntimeError, "both shape and"),
    (lambda d, m: DTensor.from_local(torch.ones(2)), RuntimeError, "No device mesh is currently"),
    (lambda d, m: d.redistribute(m), RuntimeError, "placements is needed"),
    (lambda d, m: d.redistribute(m, [P]), RuntimeError, r"from S\(0\) to P\(sum\)"),
    (lambda d, m: d.redistribute(init_device_mesh("cpu", (2, 2)), [R, R]), NotImplementedError,
     "Cross device mesh"),
    (lambda d, m: d + torch.ones(8, 2), RuntimeError, "got mixed torch.Tensor and DTensor"),
    (lambda d, m: d + put(torch.ones(8, 2), init_device_mesh("cpu", (2, 2)), R, R), RuntimeError,
     "inputs with different meshes"),
    (lambda d, m: d.view(2, 4, 2), RuntimeError, "Cannot unflatten unevenly sharded tensor"),
    (lambda d, m: d.unbind(0), RuntimeError, "unbind along the sharded dimension 0"),
    (lambda d, m: DTensor.from_local(torch.ones(2), m, [P]).add_(1), RuntimeError,
     "in-place operations that require placement changes"),
    (lambda d, m: d.tolist(), RuntimeError, "not supported for tensor subclasses"),
    (lambda d, m: distribute_module(nn.Linear(1, 1), m, input_fn=lambda: 0), ValueError,
     "input_fn should take in 3 arguments"),
])
def test_refusals(mesh, call, error, text):
    with pytest.raises(error, match=text):
        call(put(torch.ones(8, 2), mesh, Shard(0)), mesh)


def every_way(rank):
    """From each placement to each other, with gradients, on a line and on a grid; uneven too."""
    kinds = [Shard(0), Shard(1), R, P, _StridedShard(0, split_factor=2)]
    x = torch.arange(35.0).view(7, 5)
    weight = torch.linspace(-1, 1, 35).view(7, 5)
    line, grid = init_device_mesh("cpu", (4,)), init_device_mesh("cpu", (2, 2))
    ways = [(line, (a,), (b,)) for a, b in itertools.product(kinds, kinds[:3])]
    pairs = list(itertools.product(kinds[:4], kinds[:4]))
    ways += [(grid, a, b) for a in pairs for b in itertools.product(kinds[:3], kinds[:3])][::3]
    for mesh, source, target in ways:
        leaf = put(x, mesh, *source).requires_grad_()
        moved = leaf.redistribute(placements=target)
        assert moved.placements == target and moved.shape == x.shape
        shape, offset = compute_local_shape_and_global_offset(x.shape, mesh, target)
        assert moved.to_local().shape == shape
        if 0 not in shape:
            wanted = x[offset[0]:offset[0] + shape[0], offset[1]:offset[1] + shape[1]]
            torch.testing.assert_close(moved.to_local(), wanted)
        (moved.full_tensor() * weight).sum().backward()
        torch.testing.assert_close(leaf.grad.full_tensor(), weight)


def data_of_the_first(rank):
    mesh = init_device_mesh("cpu", (2, 2))
    x = torch.arange(6.0).view(3, 2) + 100 * rank
    for placements in ([Shard(0), R], [R, Shard(1)], [Shard(0), Shard(0)], [R, R]):
        assert distribute_tensor(x, mesh, placements).full_tensor().tolist() == [
            [0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert torch.equal(put(x * 0, mesh, R, R), put(x * 0, mesh, Shard(0), R))
    assert not torch.equal(put(torch.arange(4), mesh, Shard(0), R), put(torch.zeros(
        4, dtype=torch.int64), mesh, Shard(0), R))
    with pytest.raises(ValueError, match="Inconsistent tensor metadata"):
        DTensor.from_local(torch.ones(2, dtype=[torch.float32, torch.float64][rank % 2]), mesh,
                           run_check=True)
    assert DTensor.from_local(torch.ones(1) * rank, mesh, run_check=True).to_local().item() == 0
    assert put(torch.ones(4), mesh, Shard(0), P).sum().item() == 4.0


def training(rank):
    """A model whose parameters are cut in different ways trains as the whole model does."""
    mesh = init_device_mesh("cpu", (2, 2))
    torch.manual_seed(0)
    whole = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 4))
    model = copy.deepcopy(whole)
    places = iter([(Shard(0), R), (Shard(0), R), (R, R), (R, R), (Shard(1), Shard(0)), (R, R)])

    def cut(name, module, mesh):
        for key, parameter in list(module._parameters.items()):
            module.register_parameter(key, nn.Parameter(
                distribute_tensor(parameter, mesh, next(places))))
    distribute_module(model, mesh, cut,
                      lambda m, inputs, mesh: put(inputs[0], mesh, R, Shard(0)),
                      lambda m, output, mesh: output.full_tensor())
    data, target = torch.randn(5, 8, 6), torch.randint(0, 4, (5, 8))
    for make in (lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), lambda p: torch.optim.AdamW(p)):
        optimizers = [make(m.parameters()) for m in (whole, model)]
        for x, y in zip(data, target):
            losses = []
            for m, optimizer in zip((whole, model), optimizers):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(m(x), y)
                loss.backward()
                nn.utils.clip_grad_norm_(m.parameters(), 0.5)
                optimizer.step()
                losses.append(loss.item())
            assert abs(losses[0] - losses[1]) < 1e-5
    for p, q in zip(whole.parameters(), model.parameters()):
        torch.testing.assert_close(q.full_tensor(), p, rtol=1e-4, atol=1e-5)
    model.load_state_dict(model.state_dict())


@pytest.mark.parametrize("work", [every_way, data_of_the_first, training])
def test_four_processes(processes, work):
    processes(work, size=4)


def test_optimizers_step_on_pieces(mesh):
    """Rules that treat each element by itself run on local tensors, all in one call; states are
    distributed tensors all the same."""
    for kind, options in ((torch.optim.SGD, {"momentum": 0.9}), (torch.optim.AdamW, {}),
                          (torch.optim.RMSprop, {"weight_decay": 0.1}), (torch.optim.Adagrad, {}),
                          (torch.optim.Adamax, {}), (torch.optim.Rprop, {}),
                          (torch.optim.Adam, {"amsgrad": True})):
        torch.manual_seed(0)
        whole = nn.Parameter(torch.randn(8, 2))
        cut = nn.Parameter(put(whole.detach().clone(), mesh, Shard(0)))
        optimizers = [kind([p], lr=0.1, **options) for p in (whole, cut)]
        for _ in range(3):
            grad = torch.randn(8, 2)
            whole.grad, cut.grad = grad, put(grad, mesh, Shard(0))
            for optimizer in optimizers:
                optimizer.step()
        kept = optimizers[1].state[cut]
        for name, value in optimizers[0].state[whole].items():
            if isinstance(value, torch.Tensor) and value.ndim:
                assert kept[name].placements == (Shard(0),)
                torch.testing.assert_close(kept[name].to_local(), value[2:4])
        torch.testing.assert_close(cut.to_local(), whole[2:4])
    small = nn.Parameter(put(torch.ones(2, 2), mesh, Shard(0)))     # nothing of it is here
    small.grad = put(torch.ones(2, 2), mesh, Shard(0))
    torch.optim.AdamW([small]).step()


def test_the_older_place_of_what_is_experimental():
    from flambeau.distributed._tensor.experimental import implicit_replication
    from flambeau.distributed.tensor import experimental
    assert implicit_replication is experimental.implicit_replication
