"""The path of a call with canonical arguments, and what ops refuse."""
import numpy as np
import pytest

import flambeau as torch
from flambeau.core.calling import call
from flambeau.core.op import table
from flambeau.core.tensor import plain_types


@pytest.mark.parametrize("name, canonical", [
    ("exp", (torch.tensor([0.0, 1.0]),)), ("cat", ((torch.ones(1), torch.zeros(2)), 0)),
    ("sort", (torch.tensor([2.0, 1.0]), 0, False, False)),
    ("permute", (torch.arange(6.0).view(2, 3), (1, 0)))])
def test_the_readable_call_gives_what_the_op_gives(name, canonical):
    op = table[name]
    readable = call.make_call(op, (), plain_types)
    found, expected = readable(*canonical), op.call(*canonical)
    if not isinstance(found, torch.Tensor):
        found, expected = found[0], expected[0]
    assert torch.equal(found, expected) and found.stride() == expected.stride()
    assert (found._base is None) is (expected._base is None)


def test_integers_become_floating_first():
    run = call.with_float_inputs(np.sqrt)
    assert run(np.array([4])).dtype == np.float32 and run(np.array([4.0])).dtype == np.float64


def test_any_tensor():
    class Own(torch.Tensor):
        pass
    assert torch.Tensor in call.ANY and Own in call.ANY and int not in call.ANY


@pytest.mark.parametrize("function, said", [
    (lambda x: x.sinh(), None),
    (lambda x: x.sort(), " Sort does not support complex dtypes on CPU"),
    (lambda x: x.cummax(0), "\"cummax_cpu\" not implemented for 'ComplexFloat'"),
    (lambda x: x.floor(), "floor is not supported for complex inputs")])
def test_refused_types(function, said):
    x = torch.ones(2, dtype=torch.complex64)
    if said is None:
        function(x)
    else:
        with pytest.raises((RuntimeError, NotImplementedError)) as error:
            function(x)
        assert str(error.value).splitlines()[0].startswith(said)


def test_subclasses_are_kept():
    class Own(torch.Tensor):
        pass
    x = torch.ones(2).as_subclass(Own)
    assert type(x.exp()) is Own and type(torch.cat((x, x))) is Own
