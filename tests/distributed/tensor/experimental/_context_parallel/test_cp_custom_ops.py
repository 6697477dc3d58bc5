"""Keys and values of all processes."""
import pytest
from tensor_cases import imagined

import flambeau as torch
from flambeau import distributed as dist
from flambeau._subclasses.fake_tensor import FakeTensorMode
from flambeau.distributed.tensor.experimental._context_parallel import flex_cp_allgather


@pytest.mark.parametrize("dim", [0, 2])
def test_shapes_without_values(dim):
    with imagined(4) as mesh, FakeTensorMode():
        k, v = torch.empty(1, 2, 3, 5), torch.empty(1, 2, 3, 7)
        found = flex_cp_allgather(k, v, dim, mesh.get_group().group_name)
        wanted = [[*t.shape] for t in (k, v)]
        for shape in wanted:
            shape[dim] *= 4
        assert [[*t.shape] for t in found] == wanted


def gathered(rank):
    name = dist.group.WORLD.group_name
    k = torch.full((1, 1, 2, 3), float(rank + 1), requires_grad=True)
    whole_k, whole_v = flex_cp_allgather(k, 10 * k, 2, name)
    assert whole_k[0, 0, :, 0].tolist() == [1, 1, 2, 2]
    assert whole_v[0, 0, :, 0].tolist() == [10, 10, 20, 20]
    places = torch.arange(4.0).view(1, 1, 4, 1)
    (whole_k * places + whole_v).sum().backward()
    # Both processes' losses depend on a part: its gradient is the sum of two.
    assert k.grad[0, 0, :, 0].tolist() == [2 * (p + 10) for p in (2 * rank, 2 * rank + 1)]


def test_two_processes(processes):
    processes(gathered)
