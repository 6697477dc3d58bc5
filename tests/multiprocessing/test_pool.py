"""A pool of processes that take and give tensors."""
import flambeau as torch
from flambeau.multiprocessing.pool import Pool


def test_tensors_are_sent_both_ways():
    with Pool(2) as pool:
        found = pool.map(torch.square, [torch.tensor([float(n)]) for n in range(4)])
    assert [t.item() for t in found] == [0, 1, 4, 9]
