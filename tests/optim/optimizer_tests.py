"""What every optimiser has to pass: it walks where PyTorch's walks and where its formula says,
its kernel where its rule does, a loaded state as the saved one, complex numbers as pairs of reals.

A test file gets these tests by a class of its own:

    class TestSGD(OptimizerTests):
        name = "SGD"
        state, options = "momentum_buffer", "lr momentum …"     # what is saved, in order
        refused = [({"lr": -1.0}, ValueError, "Invalid learning rate: -1.0")]

        def by_formula(self, x, grad): ...                      # generator of points (NumPy)
"""

import copy
import functools
import json
from pathlib import Path

import numpy as np
import pytest
from optim_cases import COMPLEX, OPTIMIZERS, loss_of, numbers, optimizer_cases, start, trajectory

import flambeau as torch

DATA = Path(__file__).resolve().parents[1] / "data" / "optim_trajectories.json"
TOLERANCE = {"float64": 1e-9, "complex128": 1e-9, "float32": 2e-4}
DIFFERENTIABLE = ("SGD", "Adam", "Adamax", "NAdam", "RAdam", "Adadelta", "RMSprop", "Adagrad",
                  "ASGD")
START = np.array([[0.5, -1.5], [2.0, 0.25]])


def gradient(x):
    """Of a loss that is not quadratic; some of its signs change on the way."""
    return np.cos(3 * x) + 0.2 * x


@functools.cache
def recorded():
    return json.loads(DATA.read_text())


def step(params, optimizer):
    optimizer.zero_grad()
    loss_of(params).backward()
    optimizer.step()


class OptimizerTests:
    name: str
    state = options = ""
    refused: list = []
    formula_options: dict = {}
    formula_rtol = 1e-9                 # some keep numbers of the step in float32
    by_formula = None
    sparse = False                      # are its gradients?

    def make(self, params, **options):
        return getattr(torch.optim, self.name)(params, **options)

    def pytest_generate_tests(self, metafunc):
        tables = {
            "run": [(key, options, dtype) for key, name, options, dtype in optimizer_cases()
                    if name == self.name],
            "choice": OPTIMIZERS[self.name],
            "refusal": self.refused}
        for argument, values in tables.items():
            if argument in metafunc.fixturenames:
                metafunc.parametrize(argument, values, ids=str)

    def test_trajectory(self, run):
        key, options, dtype = run
        rel = TOLERANCE[dtype]
        if self.name == "LBFGS" and dtype == "float32" and "line_search_fn" in options:
            rel = 1e-3      # losses are compared: where one is least, they say √eps of the place
        actual = trajectory(torch, self.name, options, dtype)
        for mine, theirs in zip(actual, recorded()[key], strict=True):
            assert mine == pytest.approx(theirs, rel=rel, abs=rel * 1e-2)

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_kernel_agrees_with_the_rule(self, dtype, choice, monkeypatch):
        if not getattr(getattr(torch.optim, self.name), "kernel_dtypes", ()):
            pytest.skip("it has no kernel")
        by_kernel = trajectory(torch, self.name, choice, dtype)
        monkeypatch.setattr(getattr(torch.optim, self.name), "kernel_dtypes", ())
        by_rule = trajectory(torch, self.name, choice, dtype)
        for mine, theirs in zip(by_kernel, by_rule, strict=True):
            assert mine == pytest.approx(theirs, rel=TOLERANCE[dtype] / 100, abs=1e-7)

    def test_steps_are_those_of_the_formula(self):
        if self.by_formula is None:
            pytest.skip("it is tested otherwise")
        p = torch.tensor(START, requires_grad=True)
        optimizer = self.make([p], **self.formula_options)
        for _, wanted in zip(range(4), self.by_formula(START)):
            p.grad = torch.from_numpy(gradient(p.detach().numpy()))
            optimizer.step()
            np.testing.assert_allclose(p.detach().numpy(), wanted, rtol=self.formula_rtol)

    def test_what_is_saved(self):
        """The names, in order, and the shapes that a checkpoint relies on."""
        p = torch.nn.Parameter(torch.ones(2, 3))
        optimizer = self.make([p])
        assert " ".join(optimizer.param_groups[0]) == f"params {self.options}"
        p.grad = torch.ones(2, 3).to_sparse(1) if self.sparse else torch.ones(2, 3)
        optimizer.step(lambda: torch.tensor(1.0))
        saved = optimizer.state_dict()
        assert " ".join(saved["state"].get(0, {})) == self.state
        assert saved["param_groups"][0]["params"] == [0]
        if "step" in self.state.split() and not self.sparse:
            count = saved["state"][0]["step"]
            assert (count.shape, count.dtype, count.item()) == ((), torch.float32, 1.0)

    def test_state_dict_resumes(self, choice):
        """A copy that loads the state walks on as the original does."""
        if self.name in ("LBFGS", "SparseAdam", "Muon"):
            pytest.skip("its steps need other gradients")
        params = start(torch, self.name, "float64")
        optimizer = self.make(params, **choice)
        for _ in range(3):
            step(params, optimizer)
        others = [p.detach().clone().requires_grad_() for p in params]
        copied = self.make(others, **{**choice, "lr": 7.0})
        copied.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        for _ in range(3):
            step(params, optimizer)
            step(others, copied)
        for mine, theirs in zip(params, others, strict=True):
            # a 0-d float32 of the state, as NAdam's mu_product, loads as the parameter's dtype
            assert numbers(torch, mine) == pytest.approx(numbers(torch, theirs), rel=1e-6)

    def test_differentiable_through_the_gradient(self):
        """The step's derivative in the gradient, against differences."""
        if self.name not in DIFFERENTIABLE:
            pytest.skip("its steps have no derivative")
        options = {"lr": 0.1, "differentiable": True,
                   **({"momentum": 0.9} if self.name == "SGD" else {})}

        def two_steps(grad):
            p = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True).clone()
            optimizer = self.make([p], **options)
            p.grad = grad
            optimizer.step()
            p.grad = 2 * grad
            optimizer.step()
            return p

        grad = torch.tensor([0.5, 0.7], dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(two_steps, (grad,))

    def test_complex_is_a_pair_of_reals(self):
        if self.name not in COMPLEX or self.name == "LBFGS":
            pytest.skip("its closure sees the parameters themselves")
        z = torch.tensor([1 + 2j, -1 + 0.5j], dtype=torch.complex128, requires_grad=True)
        x = torch.view_as_real(z.detach().clone()).requires_grad_()
        one, other = self.make([z], lr=0.1), self.make([x], lr=0.1)
        for i in range(4):
            z.grad = torch.tensor([1 - 1j, 0.5 + 2j], dtype=torch.complex128) * (i + 1)
            x.grad = torch.view_as_real(z.grad)
            one.step()
            other.step()
        assert torch.allclose(torch.view_as_real(z.detach()), x.detach(), rtol=1e-12)

    def test_bad_options(self, refusal):
        options, error, message = refusal
        with pytest.raises(error, match=message):
            self.make([torch.ones(2, 2, requires_grad=True)], **options)

    def test_lists_have_no_derivatives(self):
        options = dict.fromkeys(("foreach", "differentiable"), True)
        if self.name == "SGD" or "differentiable" not in self.options:
            pytest.skip("it takes no such options, or takes both")
        p = torch.ones(2, requires_grad=True)
        optimizer = self.make([p], **options)
        p.grad = torch.ones(2)
        with pytest.raises(AssertionError, match="_foreach ops don't support autograd"):
            optimizer.step()
