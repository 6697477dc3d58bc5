"""Groups of which one process is enough."""
import flambeau as torch
from flambeau import distributed as dist
from flambeau.testing._internal.distributed.fake_pg import FakeStore


def test_collectives_of_one_process():
    dist.init_process_group("fake", store=FakeStore(), rank=3, world_size=8)
    try:
        assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (3, 8, "fake")
        x = torch.ones(2)
        dist.all_reduce(x)
        dist.barrier()
        work = dist.broadcast(x, src=0, async_op=True)
        work.wait()
        parts = [torch.zeros(2) for _ in range(8)]
        dist.all_gather(parts, x)
        assert x.tolist() == [1.0, 1.0] and parts[5].shape == (2,)
    finally:
        dist.destroy_process_group()
    assert not dist.is_initialized()


def test_stores_are_not_shared():
    first, second = FakeStore(), FakeStore()
    first.set("key", "value")
    assert first.get("key") == b"value" and not second.check(["key"])
