"""`vmap` of ops whose results are as long as the values say: the same as slice by slice."""
import pytest

import flambeau as torch
from flambeau.func import grad, vmap

X = torch.tensor([[1.0, -2.0, 3.0], [-4.0, 5.0, 6.0]])
N = torch.tensor([[2, 0, 2, 1], [0, 2, 1, 1]])


@pytest.mark.parametrize("function, batch", [
    (lambda row: row.nonzero(), torch.tensor([[0, 3, 1], [2, 0, 1]])),
    (lambda row: row[row > 0], X),
    (lambda row: row.masked_select(row > 0), X),
    (lambda row: row.repeat_interleave(torch.tensor([2, 0, 1])), X),
    (lambda n: torch.repeat_interleave(n, output_size=5), torch.tensor([[2, 3], [1, 4]])),
    (lambda n: n.bincount(), N),
    (lambda n: n.bincount(minlength=5), N),
    (lambda n: n.bincount(weights=torch.tensor([0.5, 1.0, 1.5, 2.0])), N),
    (lambda n: n.unique(), N),
    (lambda n: n.unique(return_inverse=True, return_counts=True), N),
    (lambda n: n.unique_consecutive(return_counts=True), torch.tensor([[1, 1, 2], [3, 0, 0]])),
])
def test_slices_of_equal_length(function, batch):
    found = vmap(function)(batch)
    by_one = [function(row) for row in batch]
    if isinstance(found, tuple):
        for i, part in enumerate(found):
            assert torch.equal(part, torch.stack([one[i] for one in by_one]))
    else:
        assert torch.equal(found, torch.stack(by_one))


def test_another_dimension_is_batched():
    columns = torch.tensor([[1.0, 4.0], [3.0, 0.0]])
    assert vmap(lambda c: c[c > 2], in_dims=1)(columns).tolist() == [[3.0], [4.0]]


def test_one_mask_for_all():
    mask = torch.tensor([True, False, True])
    assert vmap(lambda row: row.masked_select(mask))(X).tolist() == [[1, 3], [-4, 6]]


def test_slices_of_other_lengths_are_refused():
    with pytest.raises(RuntimeError, match=r"stack expects each tensor to be equal size, but got "
                                           r"\[2\] at entry 0 and \[1\] at entry 1"):
        vmap(lambda row: row[row > 0])(torch.tensor([[1.0, 2.0], [3.0, -1.0]]))


def test_gradients_go_through():
    found = vmap(grad(lambda row: (row[row > 0] ** 2).sum()))(X)
    assert found.tolist() == [[2, 0, 6], [0, 10, 12]]
