"""What an index means, and the errors of those that mean nothing."""
import pytest

import flambeau as torch

x = torch.arange(6).reshape(2, 3)


@pytest.mark.parametrize("index,error,said", [
    ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
    (2, IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
    ((0, -4), IndexError, "index -4 is out of bounds for dimension 1 with size 3"),
    ("a", TypeError, r"new\(\): invalid data type 'str'"),
    (1.5, IndexError, "only integers, slices"),
    (torch.tensor([0, 5]), IndexError, "index 5 is out of bounds"),
    (torch.ones(3, dtype=torch.bool), IndexError, "does not match the shape of the indexed tensor"),
    (torch.tensor([0.5]), IndexError, "must be long, int, byte or bool tensors")])
def test_what_means_nothing(index, error, said):
    with pytest.raises(error, match=said):
        x[index]


@pytest.mark.parametrize("one,other", [
    ([0, 1], torch.tensor([0, 1])), ((slice(None), [0, 2]), (..., torch.tensor([0, 2]))),
    (True, None), (torch.tensor(1), 1), ([True, False], torch.tensor([True, False]))])
def test_spellings_of_one_index(one, other):
    assert torch.equal(x[one], x[other])
