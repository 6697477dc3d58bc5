"""What every layer has to pass: values and gradients that PyTorch gave; the kernel's gradient is
the body's, second derivatives and forward mode are those of differences, vmap is a loop.

A test file with `cases` of layers gets these tests by a class of its own:

    class TestLayers(LayerTests):
        cases = cases
"""
import functools
import json
import warnings

import numpy as np
import pytest
from layers import Cases, Maker
from samples import HERE

import flambeau
import flambeau.nn
from flambeau.core.tensor import as_leaf
from flambeau.transforms.batching import BatchLevel
from flambeau.transforms.forward import ForwardLevel

STEP = 1e-6
RUNNING = {"batch_norm_running", "instance_norm_running"}         # give statistics too
PRETENDING = RUNNING | {"embedding", "embedding_frequency"}     # not the derivatives


@functools.cache
def recorded():
    """Case by case the shape, the values, and the gradients."""
    data = np.load(HERE.parent / "data" / "network.npz")
    bounds = np.concatenate([[(0, 0)], data["sizes"].cumsum(0)])
    shapes = json.loads(str(data["shapes"]))
    return {str(name): (shape, data["values"][a:b], data["grads"][c:d])
            for name, shape, (a, c), (b, d) in zip(data["names"], shapes, bounds, bounds[1:])}


class Given(Maker):
    """Hands out given tensors for the inputs that take gradients."""

    def __init__(self, name, given):
        super().__init__(flambeau, name)
        self.given = list(given)

    def __call__(self, *shape, grad=True, **options):
        tensor = super().__call__(*shape, grad=grad, **options)
        return self.given.pop(0) if grad else tensor


def run(name, case, given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return case(flambeau, Given(name, given))


class Problem:
    """A case at a point, with a direction to move in and weights for its result."""

    def __init__(self, name, case):
        self.name, self.case = name, case
        make = Maker(flambeau, name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = case(flambeau, make)
        self.point = [x.detach() for x in make.inputs]
        random = np.random.RandomState(1)
        self.direction, self.other = [
            [flambeau.from_numpy(np.asarray(random.standard_normal(tuple(x.shape))))
             for x in self.point] for _ in range(2)]
        self.weights = flambeau.cos(flambeau.arange(
            result.numel(), dtype=result.dtype)).reshape(result.shape)

    def run(self, point):
        """The result of the case at `point`."""
        return run(self.name, self.case, point)

    def at(self, step):
        return [x + step * d for x, d in zip(self.point, self.direction)]

    def gradients(self, step, create_graph=False):
        point = [x.detach().requires_grad_() for x in self.at(step)]
        loss = (self.run(point) * self.weights).sum()
        found = flambeau.autograd.grad(loss, point, create_graph=create_graph, allow_unused=True)
        return point, [flambeau.zeros_like(x) if g is None else g for g, x in zip(found, point)]


def close(found, expected, tolerance):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    if found.size:
        assert np.max(np.abs(found - expected) / (1 + np.abs(expected))) < tolerance


def dot(a, b):
    return sum((x * y).sum() for x, y in zip(a, b))


def slices(level, tensor, count):
    value, where = level.unwrap(tensor)
    return [value if where is None else value.select(where, k) for k in range(count)]


def of(without=frozenset()):
    """Marks a test as one for all cases, but for some."""
    def mark(test):
        test.without = without
        return test
    return mark


class LayerTests:
    """The tests of one file's cases; each runs once for each of them."""
    cases: Cases

    def pytest_generate_tests(self, metafunc):
        metafunc.parametrize("name", [n for n in self.cases if n not in metafunc.function.without])

    @of()
    def test_values_and_gradients(self, name):
        shape, values, grads = recorded()[name]
        make = Maker(flambeau, name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = self.cases[name](flambeau, make)
        assert list(result.shape) == shape
        np.testing.assert_allclose(result.detach().numpy().reshape(-1), values, rtol=2e-6,
                                   atol=1e-6)
        weights = flambeau.cos(flambeau.arange(result.numel(), dtype=result.dtype)).reshape(shape)
        found = flambeau.autograd.grad((result * weights).sum(), make.inputs, allow_unused=True)
        flat = np.concatenate([np.zeros(x.numel()) if g is None else g.numpy().reshape(-1)
                               for g, x in zip(found, make.inputs)])
        np.testing.assert_allclose(flat, grads, rtol=2e-6, atol=1e-6)

    @of()
    def test_gradient_of_the_body_and_second_order(self, name):
        problem = Problem(name, self.cases[name])
        point, backward_through_body = problem.gradients(0, create_graph=True)
        _, by_kernel = problem.gradients(0)
        for a, b in zip(backward_through_body, by_kernel):
            close(a.detach(), b, 1e-8)
        if name in PRETENDING:
            return
        up, down = problem.run(problem.at(STEP)), problem.run(problem.at(-STEP))
        slope = ((up - down) * problem.weights).sum() / (2 * STEP)
        close(dot(by_kernel, problem.direction), slope, 2e-5)
        along = dot(backward_through_body, problem.other)
        second = [None] * len(point)
        if along.requires_grad:
            second = flambeau.autograd.grad(along, point, allow_unused=True)
        found = sum((g * d).sum().item()
                    for g, d in zip(second, problem.direction) if g is not None)
        _, up = problem.gradients(STEP)
        _, down = problem.gradients(-STEP)
        expected = dot([(u - d) / (2 * STEP) for u, d in zip(up, down)], problem.other)
        close(found, expected, 1e-4)

    @of(RUNNING)
    def test_forward_mode(self, name):
        problem = Problem(name, self.cases[name])
        with ForwardLevel() as level:
            point = [x.clone() for x in problem.point]
            for x, d in zip(point, problem.direction):
                level.set_tangent(x, d)
            found = level.tangent(problem.run(point))
        expected = (problem.run(problem.at(STEP)) - problem.run(problem.at(-STEP))) / (2 * STEP)
        close(flambeau.zeros_like(expected) if found is None else found, expected, 2e-5)

    @of(PRETENDING)
    def test_forward_over_reverse(self, name):
        problem = Problem(name, self.cases[name])
        with ForwardLevel() as level:
            point = [x.clone().requires_grad_() for x in problem.point]
            for x, d in zip(point, problem.direction):
                level.set_tangent(x, d)
            loss = (problem.run(point) * problem.weights).sum()
            gradients = flambeau.autograd.grad(loss, point, allow_unused=True)
            found = [None if g is None else level.tangent(g) for g in gradients]
        _, up = problem.gradients(STEP)
        _, down = problem.gradients(-STEP)
        for f, u, d in zip(found, up, down):
            expected = (u - d) / (2 * STEP)
            close(flambeau.zeros_like(expected) if f is None else f, expected, 1e-4)

    @of(RUNNING)
    @pytest.mark.parametrize("every", [True, False])
    def test_vmap(self, name, every, no_loops):
        problem, count = Problem(name, self.cases[name]), 3
        stacks = [flambeau.stack([x * (1 - 0.05 * k) for k in range(count)]) for x in problem.point]
        batched = [every or i == 0 for i in range(len(stacks))]
        with BatchLevel(count) as level:
            given = [level.wrap(s, 0) if b else x
                     for s, x, b in zip(stacks, problem.point, batched)]
            given = [as_leaf(x.detach()) for x in given]
            result = problem.run(given)
            loss = (result * problem.weights).sum()
            gradients = flambeau.autograd.grad(loss, given, allow_unused=True)
            found = slices(level, result, count)
            found_gradients = [None if g is None else slices(level, g, count) for g in gradients]
        for k in range(count):
            point = [(s[k] if b else x).detach().requires_grad_()
                     for s, x, b in zip(stacks, problem.point, batched)]
            result = problem.run(point)
            close(found[k].detach(), result.detach(), 1e-9)
            loss = (result * problem.weights).sum()
            expected = flambeau.autograd.grad(loss, point, allow_unused=True)
            for f, e in zip(found_gradients, expected):
                if f is not None and e is not None:
                    close(f[k].detach(), e, 1e-8)
