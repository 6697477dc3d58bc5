"""What linear algebra refuses, in PyTorch's words."""
import pytest

import flambeau as torch


@pytest.mark.parametrize("call,said", [
    (lambda: torch.linalg.inv(torch.ones(3)), "must have at least 2 dimensions"),
    (lambda: torch.linalg.det(torch.ones(2, 3)), "must be batches of square matrices"),
    (lambda: torch.linalg.inv(torch.ones(2, 2, dtype=torch.int64)),
     "floating point or complex tensor|Expected a floating point"),
    (lambda: torch.linalg.inv(torch.ones(2, 2, dtype=torch.float16)), "Low precision dtypes"),
    (lambda: torch.linalg.inv(torch.zeros(2, 2)), "singular"),
    (lambda: torch.linalg.cholesky(-torch.eye(2)), "not positive-definite"),
    (lambda: torch.linalg.solve(torch.eye(2), torch.ones(3)), "Incompatible shapes|size"),
    (lambda: torch.linalg.solve(torch.eye(2), torch.ones(2).double()), "same type|dtype")])
def test_refusals(call, said):
    with pytest.raises(RuntimeError, match=said):
        call()


def test_the_ex_forms_say_which_failed():
    inverse, info = torch.linalg.inv_ex(torch.stack([torch.eye(2), torch.zeros(2, 2)]))
    assert info.tolist()[0] == 0 and info.tolist()[1] > 0 and torch.equal(inverse[0], torch.eye(2))
