"""Methods that PyTorch writes in Python, and those that it had once."""
import pytest

import flambeau as torch

X = torch.tensor([[3.0, 1.0], [1.0, 2.0]])


def test_they_are_the_functions():
    n = torch.tensor([2, 0, 2, 2])
    assert [t.tolist() for t in n.unique(return_inverse=True, return_counts=True)] == [
        [0, 2], [1, 0, 1, 1], [1, 3]]
    assert [t.tolist() for t in n.unique_consecutive(return_counts=True)] == [[2, 0, 2], [1, 1, 2]]
    factors, pivots = X.lu()
    lower, upper = factors.tril(-1) + torch.eye(2), factors.triu()
    assert pivots.tolist() == [1, 2] and torch.allclose(lower @ upper, X)
    assert len(X.lu(get_infos=True)) == 3


def test_errors_are_those_of_python():
    with pytest.raises(TypeError, match="unexpected keyword argument 'dims'"):
        X.unique(dims=0)
    with pytest.raises(TypeError, match="positional argument"):
        X.lu(True, True, True)


@pytest.mark.parametrize("call, instead", [
    (lambda: X.eig(), "torch.linalg.eig"), (lambda: X.symeig(), "torch.linalg.eigh"),
    (lambda: X.lstsq(X), "torch.linalg.lstsq"), (lambda: X.solve(X), "torch.linalg.solve"),
    (lambda: X.reinforce(1.0), "log_prob")])
def test_what_is_gone_says_what_to_use(call, instead):
    with pytest.raises(RuntimeError, match=instead.replace(".", r"\.")):
        call()


def test_resize_keeps_the_elements():
    with pytest.warns(UserWarning, match="non-inplace resize is deprecated"):
        assert X.resize(4).tolist() == [3, 1, 1, 2]
    with pytest.warns(UserWarning, match="non-inplace resize_as is deprecated"):
        assert X.resize_as(torch.zeros(1, 4)).tolist() == [[3, 1, 1, 2]]
    with pytest.warns(UserWarning), pytest.raises(
            RuntimeError, match=r"requested resize to 3 \(3 elements in total\), but the given "
                                "tensor has a size of 2x2"):
        X.resize(3)
