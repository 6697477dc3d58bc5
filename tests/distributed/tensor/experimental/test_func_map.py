"""Local functions on distributed tensors."""
from __future__ import annotations

import pytest
from tensor_cases import imagined

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from flambeau.distributed.tensor.experimental import (
    local_map,
)

S0, S1, R, P = [Shard(0)], [Shard(1)], [Replicate()], [Partial()]


def products(rank):
    """A product whose terms are summed up: PyTorch's example, with gradients."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(0)
    a, b = torch.randn(3, 4, requires_grad=True), torch.randn(4, 5, requires_grad=True)
    product = local_map(torch.mm, out_placements=P, in_placements=(S1, S0), device_mesh=mesh)
    x, y = (distribute_tensor(t.detach(), mesh, p).requires_grad_() for t, p in ((a, S1), (b, S0)))
    found = product(x, y)
    assert found.placements == (Partial(),)
    weights = torch.randn(3, 5)
    (found.full_tensor() * weights).sum().backward()
    ((a @ b) * weights).sum().backward()
    torch.testing.assert_close(found.full_tensor(), a @ b)
    torch.testing.assert_close(x.grad.full_tensor(), a.grad)
    torch.testing.assert_close(y.grad.full_tensor(), b.grad)
    again = local_map(torch.mm, out_placements=P, in_placements=(S1, S0),
                      in_grad_placements=(S1, S0), redistribute_inputs=True)
    other = distribute_tensor(a.detach(), mesh)
    torch.testing.assert_close(again(other, y).full_tensor(), a @ b)


def test_two_processes(processes):
    processes(products)


@pytest.fixture
def mesh():
    """Process 1 of 2, the other imagined."""
    with imagined(2) as found:
        yield found


def put(mesh, *placements):
    return distribute_tensor(torch.ones(4, 2), mesh, placements, src_data_rank=None)


def test_local_functions(mesh):
    x = put(mesh, Shard(0))
    assert local_map(lambda a: a * 2, out_placements=S0)(x).to_local().tolist() == [[2.0] * 2] * 2
    assert local_map(out_placements=S0)(lambda a, b: a * b)(x, 3).placements == (Shard(0),)
    assert local_map(lambda a: a)(x).placements == (Replicate(),)
    plain = torch.ones(2)
    assert local_map(lambda a: a, out_placements=S0)(plain) is plain
    first, second = local_map(lambda a: (a, {"k": a}), out_placements=(S0, R))(x)
    assert first.shape == (4, 2) and second["k"].placements == (Replicate(),)
    found, number = local_map(lambda a: (a, 1), out_placements=(S0, None))(x)
    assert isinstance(found, DTensor) and number == 1


@pytest.mark.parametrize("call, error, text", [
    (lambda f, x: local_map(f, S0, (S0,))(x, 2), AssertionError, "length 1 does not match"),
    (lambda f, x: local_map(f, S0, (R, None))(x, 2), ValueError, "set redistribute_inputs=True"),
    (lambda f, x: local_map(f, S0, (S0, S0))(x, 2), AssertionError, "Non-Tensor input 2 expects"),
    (lambda f, x: local_map(f, S0, (None, None))(x, 2), AssertionError, "but received None"),
    (lambda f, x: local_map(lambda a: (a, a), S0)(x), AssertionError, "1 out_placements but 2"),
    (lambda f, x: local_map(lambda a: 1, S0)(x), AssertionError, "Non-tensor output 1 expects"),
])
def test_errors(mesh, call, error, text):
    with pytest.raises(error, match=text):
        call(lambda a, b: a * b, put(mesh, Shard(0)))
