"""The compiled steps of optimizers, and their twins in NumPy, to the last bit."""
import itertools

import numpy as np
import pytest

from flambeau.kernels.network import optimizers

SHAPES = [(3,), (), (5, 7), (70_000,), (0, 2)]
TYPES = [np.float32, np.float64]


def arrays(seed, dtype, positive=False):
    draw = np.random.default_rng(seed)
    found = [np.asarray(draw.standard_normal(shape).astype(dtype)) for shape in SHAPES]
    return [np.asarray(np.abs(a)) for a in found] if positive else found


def both(step, monkeypatch, *lists, options):
    """What a step makes of the lists, compiled and in NumPy."""
    results = []
    for compiled in (True, False):
        if not compiled:
            monkeypatch.setattr(optimizers, "native", None)
        copies = [[a.copy() for a in each] for each in lists]
        step(*copies, *options)
        results.append(copies)
    return results


def same(found, expected):
    for one, other in zip(itertools.chain(*found), itertools.chain(*expected), strict=True):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("decay", [0, 0.1])
@pytest.mark.parametrize(("momentum", "dampening", "nesterov"),
                         [(0, 0, False), (0.9, 0, False), (0.9, 0.3, False), (0.9, 0, True)])
def test_gradient_descent(dtype, maximize, decay, momentum, dampening, nesterov, monkeypatch):
    buffers = arrays(2, dtype) if momentum else []
    same(*both(optimizers.sgd_step, monkeypatch, arrays(0, dtype), arrays(1, dtype), buffers,
               options=(0.05, momentum, dampening, decay, nesterov, maximize)))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("greatest", [False, True])
@pytest.mark.parametrize(("decay", "decoupled"), [(0, False), (0.1, False), (0.1, True)])
def test_adam(dtype, maximize, greatest, decay, decoupled, monkeypatch):
    steps = [np.array(float(i), np.float32 if i % 2 else dtype) for i in range(len(SHAPES))]
    most = arrays(4, dtype, True) if greatest else []
    same(*both(optimizers.adam_step, monkeypatch, arrays(0, dtype), arrays(1, dtype),
               arrays(2, dtype), arrays(3, dtype, True), most, steps,
               options=(0.01, 0.9, 0.999, 1e-8, decay, decoupled, maximize)))


def test_arrays_with_gaps_are_left_to_numpy():
    whole = np.ones((4, 4), np.float32)
    params, grads = [whole[:, ::2]], [np.ones((4, 2), np.float32)]
    optimizers.sgd_step(params, grads, [], 0.5, 0, 0, 0, False, False)
    assert (whole[:, ::2] == 0.5).all() and (whole[:, 1::2] == 1).all()
