"""Parts of results are merged to the result for all keys."""
import pytest
from tensor_cases import imagined

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed.tensor.experimental._context_parallel import _ring
from flambeau.distributed.tensor.experimental._context_parallel._options import _RotateMethod


def attend(q, k, v):
    scores = q @ k.transpose(-1, -2)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_merging(dtype):
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, 6, 4, dtype=torch.float64)
    expected = attend(q, k, v)
    merger = _ring._SDPAMerger(True, 2)
    for a, b in zip(k.chunk(3, 2), v.chunk(3, 2)):
        merger.step(*[x.to(dtype) for x in attend(q, a, b)], partial=False)
    for found, wanted in zip(merger.results(), expected):
        assert found.dtype is dtype
        tolerance = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 3e-2}[dtype]
        torch.testing.assert_close(found.double(), wanted, rtol=tolerance, atol=tolerance)


def test_merging_for_the_second_half_of_the_queries():
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 1, 4, 3, dtype=torch.float64)
    merger = _ring._SDPAMerger(True, 2)
    merger.step(*attend(q, k[:, :, :2], v[:, :, :2]), partial=False)
    merger.step(*attend(q[:, :, 2:], k[:, :, 2:], v[:, :, 2:]), partial=True)
    out, lse = merger.results()
    early, late = attend(q, k[:, :, :2], v[:, :, :2]), attend(q, k, v)
    torch.testing.assert_close(out[:, :, :2], early[0][:, :, :2])
    torch.testing.assert_close(out[:, :, 2:], late[0][:, :, 2:])
    torch.testing.assert_close(lse[..., 2:], late[1][..., 2:])


@pytest.mark.parametrize(("add", "expected"), [(False, [0, 1, 9, 9]), (True, [0, 1, 11, 12])])
def test_one_of_several_chunks(add, expected):
    x = torch.arange(4)
    found = _ring._partial_update(x, torch.tensor([9, 9]), 0, 2, 1, add)
    assert found.tolist() == expected and x.tolist() == [0, 1, 2, 3]


def test_methods():
    with imagined(2):
        make = _ring._create_rotater
        assert isinstance(make(dist.group.WORLD, 0, _RotateMethod.ALL_TO_ALL),
                          _ring._AllToAllRotater)
        assert isinstance(make(dist.group.WORLD, 0), _ring._AllGatherRotater)
        with pytest.raises(NotImplementedError, match="Unknown method zz"):
            make(dist.group.WORLD, 0, "zz")


def rotated(rank):
    """At each step the buffer of the process before arrives."""
    size = dist.get_world_size()
    for method in _RotateMethod:
        rotater = _ring._create_rotater(dist.group.WORLD, 0, method)
        buffer = torch.full((2,), float(rank))
        for step in range(1, size):
            rotater.exchange_buffers(buffer)
            buffer = rotater.next_buffer()
            assert buffer.tolist() == [(rank - step) % size] * 2


def test_three_processes(processes):
    processes(rotated, size=3)
