"""Functions of neural networks under every transform: the kernels' gradient is the body's, second
derivatives and forward mode are those of finite differences, vmap is a loop."""
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import flambeau
import flambeau.nn
from flambeau import func
from flambeau.transforms.batching import BatchLevel
from flambeau.transforms.forward import ForwardLevel

sys.path.insert(0, str(Path(__file__).parent))

from network_cases import CASES, Maker

STEP = 1e-6
RUNNING = {"batch_norm_running", "instance_norm_running"}         # give statistics too
PRETENDING = RUNNING | {"embedding", "embedding_frequency"}     # not the derivatives


class Given(Maker):
    """Hands out given tensors for the inputs that take gradients."""

    def __init__(self, name, given):
        super().__init__(flambeau, name)
        self.given = list(given)

    def __call__(self, *shape, grad=True, **options):
        tensor = super().__call__(*shape, grad=grad, **options)
        return self.given.pop(0) if grad else tensor


def run(name, given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CASES[name](flambeau, Given(name, given))


class Problem:
    """A case at a point, with a direction to move in and weights for its result."""

    def __init__(self, name):
        self.name = name
        make = Maker(flambeau, name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = CASES[name](flambeau, make)
        self.point = [x.detach() for x in make.inputs]
        random = np.random.RandomState(1)
        self.direction, self.other = [
            [flambeau.from_numpy(np.asarray(random.standard_normal(tuple(x.shape))))
             for x in self.point] for _ in range(2)]
        self.weights = flambeau.cos(flambeau.arange(
            result.numel(), dtype=result.dtype)).reshape(result.shape)

    def at(self, step):
        return [x + step * d for x, d in zip(self.point, self.direction)]

    def gradients(self, step, create_graph=False):
        point = [x.detach().requires_grad_() for x in self.at(step)]
        loss = (run(self.name, point) * self.weights).sum()
        found = flambeau.autograd.grad(loss, point, create_graph=create_graph, allow_unused=True)
        return point, [flambeau.zeros_like(x) if g is None else g for g, x in zip(found, point)]


def close(found, expected, tolerance):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    if found.size:
        assert np.max(np.abs(found - expected) / (1 + np.abs(expected))) < tolerance


def dot(a, b):
    return sum((x * y).sum() for x, y in zip(a, b))


@pytest.mark.parametrize("name", CASES)
def test_gradient_of_the_body_and_second_order(name):
    problem = Problem(name)
    point, through_body = problem.gradients(0, create_graph=True)
    _, by_kernel = problem.gradients(0)
    for a, b in zip(through_body, by_kernel):
        close(a.detach(), b, 1e-8)
    if name in PRETENDING:
        return
    up, down = run(name, problem.at(STEP)), run(name, problem.at(-STEP))
    slope = ((up - down) * problem.weights).sum() / (2 * STEP)
    close(dot(by_kernel, problem.direction), slope, 2e-5)
    along = dot(through_body, problem.other)
    second = [None] * len(point)
    if along.requires_grad:
        second = flambeau.autograd.grad(along, point, allow_unused=True)
    found = sum((g * d).sum().item() for g, d in zip(second, problem.direction) if g is not None)
    _, up = problem.gradients(STEP)
    _, down = problem.gradients(-STEP)
    expected = dot([(u - d) / (2 * STEP) for u, d in zip(up, down)], problem.other)
    close(found, expected, 1e-4)


@pytest.mark.parametrize("name", [n for n in CASES if n not in RUNNING])
def test_forward_mode(name):
    problem = Problem(name)
    with ForwardLevel() as level:
        point = [x.clone() for x in problem.point]
        for x, d in zip(point, problem.direction):
            level.set_tangent(x, d)
        found = level.tangent(run(name, point))
    expected = (run(name, problem.at(STEP)) - run(name, problem.at(-STEP))) / (2 * STEP)
    close(flambeau.zeros_like(expected) if found is None else found, expected, 2e-5)


@pytest.mark.parametrize("name", [n for n in CASES if n not in PRETENDING])
def test_forward_over_reverse(name):
    problem = Problem(name)
    with ForwardLevel() as level:
        point = [x.clone().requires_grad_() for x in problem.point]
        for x, d in zip(point, problem.direction):
            level.set_tangent(x, d)
        loss = (run(name, point) * problem.weights).sum()
        gradients = flambeau.autograd.grad(loss, point, allow_unused=True)
        found = [None if g is None else level.tangent(g) for g in gradients]
    _, up = problem.gradients(STEP)
    _, down = problem.gradients(-STEP)
    for f, u, d in zip(found, up, down):
        expected = (u - d) / (2 * STEP)
        close(flambeau.zeros_like(expected) if f is None else f, expected, 1e-4)


def slices(level, tensor, count):
    value, where = level.unwrap(tensor)
    return [value if where is None else value.select(where, k) for k in range(count)]


@pytest.mark.parametrize("every", [True, False])
@pytest.mark.parametrize("name", [n for n in CASES if n not in RUNNING])
def test_vmap(name, every, no_loops):
    problem, count = Problem(name), 3
    stacks = [flambeau.stack([x * (1 - 0.05 * k) for k in range(count)]) for x in problem.point]
    batched = [every or i == 0 for i in range(len(stacks))]
    with BatchLevel(count) as level:
        given = [level.wrap(s, 0) if b else x for s, x, b in zip(stacks, problem.point, batched)]
        given = [x.detach().requires_grad_() for x in given]
        result = run(name, given)
        loss = (result * problem.weights).sum()
        gradients = flambeau.autograd.grad(loss, given, allow_unused=True)
        found = slices(level, result, count)
        found_gradients = [None if g is None else slices(level, g, count) for g in gradients]
    for k in range(count):
        point = [(s[k] if b else x).detach().requires_grad_()
                 for s, x, b in zip(stacks, problem.point, batched)]
        result = run(name, point)
        close(found[k].detach(), result.detach(), 1e-9)
        loss = (result * problem.weights).sum()
        expected = flambeau.autograd.grad(loss, point, allow_unused=True)
        for f, e in zip(found_gradients, expected):
            if f is not None and e is not None:
                close(f[k].detach(), e, 1e-8)


@pytest.mark.parametrize("padding,scale", [(None, False), (1, False), (None, True)])
def test_tables_of_embeddings_under_vmap(padding, scale, no_loops):
    """Gradients in stacked tables: what each slice alone gives, and nothing for the padding."""
    tables = flambeau.arange(24.0).reshape(2, 4, 3).requires_grad_()
    indices = flambeau.tensor([[0, 1, 1], [3, 3, 2]])

    def look(table, index):
        return (flambeau.nn.functional.embedding(
            index, table, padding_idx=padding, scale_grad_by_freq=scale) ** 2).sum()

    def slopes(outer, *given):
        return flambeau.autograd.grad(outer(*given).sum(), given[0])[0]

    whole = slopes(func.vmap(look), tables, indices)
    inner = func.vmap(func.grad(look))(tables.detach(), indices)
    alone = flambeau.stack([slopes(look, t, i) for t, i in zip(
        [t.detach().requires_grad_() for t in tables], indices)])
    assert flambeau.equal(whole, alone) and flambeau.equal(inner, alone)


@pytest.mark.parametrize("kind", ["none", "mean", "sum"])
@pytest.mark.parametrize("flat", [False, True])
def test_ctc_loss_of_batched_lengths(kind, flat, no_loops):
    """Each slice may have other lengths, also none at all."""
    maker = flambeau.Generator().manual_seed(1)
    logs = flambeau.randn(3, 5, 2, 4, dtype=flambeau.double, generator=maker).log_softmax(3)
    targets = flambeau.randint(1, 4, (3, 4) if flat else (3, 2, 2), generator=maker)
    steps = flambeau.tensor([[5, 4], [3, 5], [0, 5]])
    lengths = flambeau.tensor([[2, 2], [2, 2], [2, 2]] if flat else [[2, 1], [0, 2], [0, 1]])

    def loss(*given):
        return flambeau.nn.functional.ctc_loss(*given, reduction=kind)

    def slope(*given):
        return func.grad(lambda *a: loss(*a).nan_to_num(posinf=0.0).sum())(*given)

    for function in (loss, slope):
        found = func.vmap(function)(logs, targets, steps, lengths)
        for k, one in enumerate(zip(logs, targets, steps, lengths)):
            np.testing.assert_allclose(found[k].numpy(), function(*one).numpy(), atol=1e-12)
