"""Limited-memory BFGS."""
import warnings

import pytest
from optimizer_tests import OptimizerTests

import flambeau as torch
from flambeau.optim.lbfgs import _cubic_interpolate, _strong_wolfe


class TestLBFGS(OptimizerTests):
    name = "LBFGS"
    state = "func_evals n_iter d t old_dirs old_stps ro H_diag prev_flat_grad prev_loss"
    options = ("lr max_iter max_eval tolerance_grad tolerance_change history_size line_search_fn")
    refused = [({"lr": -1.0}, ValueError, "Invalid learning rate: -1.0")]

    def test_what_is_saved(self):
        _, optimizer, closure = fourth_powers(max_iter=1)
        assert " ".join(optimizer.param_groups[0]) == f"params {self.options}"
        optimizer.step(closure)
        assert " ".join(optimizer.state_dict()["state"][0]) == self.state


def fourth_powers(**options):
    x = torch.tensor([1.0, 2.0, -3.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([x], **options)

    def closure():
        optimizer.zero_grad()
        loss = ((x - 0.3) ** 4).sum() + x.sin().sum()
        loss.backward()
        return loss

    return x, optimizer, closure


def test_it_wants_one_group():
    groups = [{"params": [torch.ones(1, requires_grad=True)]} for _ in range(2)]
    with pytest.raises(ValueError, match="LBFGS doesn't support per-parameter options"):
        torch.optim.LBFGS(groups)


def test_it_finds_the_minimum_of_rosenbrock():
    w = torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([w], max_iter=100, tolerance_change=1e-14,
                                  line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
        loss.backward()
        return loss

    optimizer.step(closure)
    assert torch.allclose(w, torch.ones(2, dtype=torch.float64), atol=1e-6)


def test_it_keeps_the_shares_of_its_history_and_the_step_as_it_was_given():
    _, optimizer, closure = fourth_powers(history_size=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step(closure)
    state = optimizer.state_dict()["state"][0]
    assert type(state["t"]) is int
    assert len(state["al"]) == 5 and all(isinstance(share, torch.Tensor) for share in state["al"])


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_the_closure_is_called_as_often_as_is_allowed(search):
    calls = []
    x, optimizer, closure = fourth_powers(max_iter=50, max_eval=7, line_search_fn=search)
    optimizer.step(lambda: (calls.append(1), closure())[1])
    assert optimizer.state[x]["func_evals"] == len(calls)
    assert 7 <= len(calls) <= 7 + (25 if search else 0)


def test_a_quadratic_is_solved_in_as_many_steps_as_it_has_dimensions():
    """With exact steps the method is that of conjugate gradients."""
    a = torch.diag(torch.tensor([1.0, 4.0, 9.0], dtype=torch.float64))
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([x], max_iter=12, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = x @ a @ x / 2 - x.sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    torch.testing.assert_close(x.detach(), 1 / a.diagonal(), rtol=1e-4, atol=1e-4)


def test_a_flat_start_takes_no_step():
    x = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.LBFGS([x])

    def closure():
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 0 and x.tolist() == [0, 0]
    assert optimizer.state[x]["func_evals"] == 1


def test_other_line_searches_are_refused():
    _, optimizer, closure = fourth_powers(line_search_fn="x")
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optimizer.step(closure)


def test_strong_wolfe_finds_the_recorded_point():
    def loss_and_gradient(x, t, d):
        y = (x + t * d).requires_grad_()
        loss = ((y - 3) ** 4).sum()
        return loss.item(), torch.autograd.grad(loss, y)[0]

    x = torch.zeros(2)
    loss, grad = loss_and_gradient(x, 0.0, x)
    loss, grad, t, evals = _strong_wolfe(loss_and_gradient, x, 1.0, -grad, loss, grad,
                                         -grad.dot(grad))
    assert loss == pytest.approx(0.00526994, rel=1e-4)
    assert (t, evals) == (pytest.approx(0.0299, rel=1e-2), 5)
    assert _cubic_interpolate(0.0, 1.0, -1.0, 1.0, 1.0, 1.0) == pytest.approx(0.5)


def test_max_eval_bounds_the_line_search_too():
    """The first length is far too short: the search would evaluate many times."""
    x, optimizer, closure = fourth_powers(lr=1e-6, max_iter=1, max_eval=4,
                                          line_search_fn="strong_wolfe")
    calls = []
    optimizer.step(lambda: calls.append(x.tolist()) or closure())
    assert len(calls) == 5 == optimizer.state[x]["func_evals"]
