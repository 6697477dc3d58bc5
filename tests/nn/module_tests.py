"""What every layer has to pass: weights, forward, gradients and printed form that PyTorch gave;
copies and states; derivatives against differences; vmap against a loop.

A test file with `cases` of layers gets these tests by a class of its own:

    class TestLayers(ModuleTests):
        cases = cases
"""

import copy
import functools
import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from nn_cases import Cases, checksum, make_inputs, run, tensors_of

import flambeau
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.func import functional_call, vmap

DATA = Path(__file__).resolve().parent.parent / "data" / "nn_layers.npz"


@functools.cache
def recorded():
    """{case: {"repr", "init", "values": {name: array}}}."""
    with np.load(DATA) as file:
        pools = {"f": file["floats"], "i": file["ints"]}
        index = json.loads(bytes(file["index"]))
    start = {"f": 0, "i": 0}
    for entry in index.values():
        values = {}
        for name, kind, shape in entry["values"]:
            size = int(np.prod(shape))
            values[name] = pools[kind][start[kind]:start[kind] + size].reshape(shape)
            start[kind] += size
        entry["values"] = values
    return index


def close(ours, theirs, name):
    np.testing.assert_allclose(
        ours.astype(np.float64), theirs.astype(np.float64), rtol=2e-4, atol=2e-5, err_msg=name
    )


def make(case):
    flambeau.manual_seed(0)
    return case.make(flambeau)


def forward(module, case):
    flambeau.manual_seed(1)
    outputs = module(*make_inputs(flambeau, case), **case.call)
    return [out.detach().numpy() for out in tensors_of(flambeau, outputs)]


def same(first, second):
    assert len(first) == len(second)
    for a, b in zip(first, second):
        np.testing.assert_array_equal(a, b)


# ---- as functions: derivatives and vmap ----------------------------------------------------------

NO_DERIVATIVE = {
    "Embedding-max_norm": "rows are scaled down in place before the look-up, outside of the graph",
}

# What these write to cannot be the same for slices that differ.
WRITTEN = {
    **dict.fromkeys(("BatchNorm", "InstanceNorm", "LazyBatchNorm", "LazyInstanceNorm"),
                    "^Batch norm got a batched tensor as input while the running_mean"),
    "Embedding-max_norm": "is not possible because there exists a Tensor `other` in extra_args",
}


class AsFunction:
    """A layer in double precision as a function of all its tensors.

    Whatever the call draws at random, it draws the same again.
    """

    def __init__(self, case):
        self.case, self.module = case, make(case).double()
        self.module.train(not case.eval)
        self.inputs = make_inputs(flambeau, case, np.float64)
        self.state = {k: p.detach().clone() for k, p in self.module.named_parameters()}
        self.buffers = {k: b.detach().clone() for k, b in self.module.named_buffers()}

    def __call__(self, inputs=None, state=None, buffers=None):
        """The outputs, then the buffers as the call leaves them."""
        flambeau.manual_seed(1)
        given = iter(tensors_of(flambeau, inputs or self.inputs))
        # What a call writes to must not be what the next one reads.
        kept = {k: b + 0 for k, b in {**self.buffers, **(buffers or {})}.items()}
        outputs = functional_call(
            self.module, {**kept, **self.state, **(state or {})},
            tuple(self.filled(spec, given) for spec in self.inputs), self.case.call)
        return *tensors_of(flambeau, outputs), *kept.values()

    def filled(self, spec, given):
        if isinstance(spec, flambeau.Tensor):
            return next(given)
        return [self.filled(s, given) for s in spec] if isinstance(spec, list) else spec

    def leaves(self):
        return tensors_of(flambeau, self.inputs)


def stacked(tensors, factors):
    """Slices that differ: floats are scaled, integers permuted."""
    return [flambeau.stack([x.detach() * f if x.is_floating_point() else x.roll(i, -1)
                            for i, f in enumerate(factors)]) for x in tensors]


def stacked_state(state, factors):
    """All but counters, which are the same for all slices."""
    return {k: flambeau.stack([x * f for f in factors]) for k, x in state.items()
            if x.is_floating_point()}


def same_as_loop(function, *batched):
    size = flambeau.utils._pytree.tree_leaves(batched)[0].shape[0]
    ours = vmap(function, randomness="same")(*batched)
    slices = [flambeau.utils._pytree.tree_map(lambda x, i=i: x[i], batched) for i in range(size)]
    for found, wanted in zip(ours, zip(*(function(*s) for s in slices))):
        wanted = np.stack([w.detach().numpy() for w in wanted])
        np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-9, atol=1e-10)


@pytest.mark.filterwarnings("ignore")
class ModuleTests:
    """The tests of one file's cases; each runs once for each of them."""
    cases: Cases

    def pytest_generate_tests(self, metafunc):
        if "case" in metafunc.fixturenames:
            metafunc.parametrize("case", self.cases, ids=lambda case: case.name)

    def test_like_pytorch(self, case):
        expected = recorded()[case.name]
        module, result = run(flambeau, case)
        assert repr(module) == expected["repr"]
        initial = {k[5:]: v for k, v in result.items() if k.startswith("init.")}
        assert list(initial) == list(expected["init"])
        for name, array in initial.items():
            shape, total, size = checksum(array)
            wanted = expected["init"][name]
            assert shape == wanted[0]
            assert [total, size] == pytest.approx(wanted[1:], rel=1e-5, abs=1e-5), name
        for name, theirs in expected["values"].items():
            ours = result[name]
            assert ours.shape == theirs.shape, name
            close(ours, theirs, name)

    def test_state_dict_round_trip(self, case):
        module, other = make(case).eval(), case.make(flambeau).eval()
        assert str(other.load_state_dict(module.state_dict())) == "<All keys matched successfully>"
        same(forward(module, case), forward(other, case))

    def test_copies(self, case):
        module = make(case).eval()
        twin = copy.deepcopy(module)
        assert repr(twin) == repr(module)
        theirs = {id(p) for p in module.parameters()}
        assert not any(id(p) in theirs for p in twin.parameters())
        same(forward(module, case), forward(twin, case))
        # Classes that the table makes inside a function cannot be pickled by name.
        if not any("<locals>" in type(m).__qualname__ for m in module.modules()):
            same(forward(module, case), forward(pickle.loads(pickle.dumps(module)), case))

    def test_train_and_eval(self, case):
        module = make(case)
        assert module.training and all(m.training for m in module.modules())
        assert module.eval() is module
        assert not any(m.training for m in module.modules())

    def test_double_precision(self, case):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = make(case).double()
        for tensor in module.state_dict().values():
            assert tensor.dtype == flambeau.float64 or not tensor.is_floating_point()

    def test_derivatives(self, case):
        """First and second derivatives in double precision, by inputs and by weights."""
        if case.name in NO_DERIVATIVE:
            pytest.skip(NO_DERIVATIVE[case.name])
        layer = AsFunction(case)
        leaves, names = layer.leaves(), list(layer.state)
        inputs = [x for x in leaves if x.requires_grad]

        def function(*values):
            some = iter(values[:len(inputs)])
            whole = [next(some) if x.requires_grad else x for x in leaves]
            outputs = layer(whole, dict(zip(names, values[len(inputs):])))
            return tuple(out for out in outputs if out.requires_grad)

        values = (*inputs, *(p.requires_grad_() for p in layer.state.values()))
        assert gradcheck(function, values, fast_mode=True)
        assert gradgradcheck(function, values, fast_mode=True)

    def test_vmap_over_inputs(self, case):
        layer = AsFunction(case)
        leaves = layer.leaves()
        # Tensors that the table makes by a function are sizes, offsets and classes.
        made = sum(not callable(s) for s in case.inputs) if all(
            not isinstance(s, list) for s in case.inputs) else len(leaves)
        batched = stacked(leaves[:made], (1.0, 0.9, 0.7))
        function = lambda *inputs: layer([*inputs, *leaves[made:]])
        written = next(
            (text for start, text in WRITTEN.items() if case.name.startswith(start)), None)
        if written and layer.module.training and (layer.buffers or case.name in WRITTEN):
            with pytest.raises(RuntimeError, match=written):
                vmap(function)(*batched)
            state = stacked_state(layer.state, (1.0, 0.5, 2.0))
            buffers = stacked_state(layer.buffers, (1.0, 0.5, 2.0))
            same_as_loop(lambda state, buffers, *inputs: layer(inputs, state, buffers),
                         state, buffers, *batched)
        else:
            same_as_loop(function, *batched)

    def test_vmap_over_weights(self, case):
        layer = AsFunction(case)
        if not layer.state:
            pytest.skip("it has no weights")
        state, buffers = (stacked_state(s, (1.0, 0.8)) for s in (layer.state, layer.buffers))
        same_as_loop(lambda state, buffers: layer(None, state, buffers), state, buffers)
