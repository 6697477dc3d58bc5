"""Copies of activations to the memory of the host, and back."""
import flambeau as torch
from flambeau._functorch._activation_offloading import offload_ops

ao = torch.ops.ao


def test_copies_are_tensors_of_their_own():
    x = torch.arange(3.0)
    away = ao.offload(x)
    back = ao.reload(away, torch.device("cpu"))
    for copy in (away, back):
        assert torch.equal(copy, x) and copy.data_ptr() != x.data_ptr()
    x.zero_()
    assert back.tolist() == [0, 1, 2]


def test_waiting_gives_the_tensor():
    x = torch.ones(2)
    assert torch.equal(ao.wait_tensor(x), x)
    assert torch.equal(ao.wait_tensor(x, torch.zeros(1)), x)


def test_a_pool_changes_nothing():
    with offload_ops.pinned_memory_pool():
        assert ao.offload(torch.ones(2)).tolist() == [1, 1]
