"""einsum: against NumPy's on drawn equations, its derivative, and the errors."""
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_tests import SampleTests
from samples import Samples, call

import flambeau

SIZES = {"a": 2, "b": 3, "c": 1, "d": 4}
LABELS = st.text("abcd", min_size=1, max_size=3)


@settings(max_examples=150, deadline=None)
@given(st.lists(LABELS, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_against_numpy(inputs, random):
    output = [n for n in sorted(set("".join(inputs))) if random.random() < 0.5]
    random.shuffle(output)
    equation = ",".join(inputs) + "->" + "".join(output)
    rng = np.random.RandomState(len(equation))
    arrays = [rng.randn(*[SIZES[n] for n in labels]) for labels in inputs]
    found = flambeau.einsum(equation, *[flambeau.tensor(a) for a in arrays])
    np.testing.assert_allclose(found.numpy(), np.einsum(equation, *arrays), rtol=1e-9, atol=1e-9)
    implicit = ",".join(inputs)
    found = flambeau.einsum(implicit, *[flambeau.tensor(a) for a in arrays])
    np.testing.assert_allclose(found.numpy(), np.einsum(implicit, *arrays), rtol=1e-9, atol=1e-9)


def test_derivative():
    """Of a contraction in one operand: the contraction of the others with the gradient."""
    rng = np.random.RandomState(0)
    a, b, c = (flambeau.tensor(rng.randn(*s)).requires_grad_() for s in ((2, 3), (3, 4), (4, 2)))
    flambeau.einsum("ij,jk,ki->", a, b, c).backward()
    assert flambeau.allclose(b.grad, (c @ a).mT)


def test_lists_and_nesting():
    a, b = flambeau.ones(2, 3), flambeau.ones(3, 4)
    assert flambeau.einsum(a, [0, 1], b, [1, 2], [0, 2]).tolist() == [[3.0] * 4] * 2
    assert flambeau.einsum("ij,jk", [a, b]).shape == (2, 4)
    assert flambeau.einsum(a, [..., 0], [0, ...]).shape == (3, 2)


def test_errors():
    a = flambeau.ones(2, 3)
    for equation, operands, message in [
            ("ij,jk", [a], "einsum(): fewer operands were provided than specified in the equation"),
            ("i", [a], "einsum(): the number of subscripts in the equation (1) does not match the "
                       "number of dimensions (2) for operand 0 and no ellipsis was given"),
            ("ij->k", [a], "einsum(): output subscript k does not appear in the equation for any "
                           "input operand"),
            ("i,.j", [a, a], "einsum(): found '.' for operand 1 that is not part of any ellipsis"),
            ("ij->i..", [a], "einsum(): found '.' for output that is not part of any ellipsis ("),
            ("ij->...i...", [a], "einsum(): found '.' for output but an ellipsis (...) was already "
                                 "found"),
            ("i->i1", [a], "einsum(): the number of subscripts in the equation (1) does not match"),
            ("ij->i->j", [a], "einsum(): invalid subscript given at index 5 in the equation"),
            ("i,j1", [a, a], "einsum(): invalid subscript given at index 3 in the equation string"),
            ("ij->ii", [a], "einsum(): output subscript i appears more than once in the output"),
            ("ii", [a], "einsum(): subscript i is repeated for operand 0 but the sizes don't "
                        "match, 3 != 2")]:
        with pytest.raises(RuntimeError, match="^" + re.escape(message)):
            flambeau.einsum(equation, *operands)
    with pytest.raises(ValueError, match=re.escape("is not within the valid range [0, 52)")):
        flambeau.einsum(a, [0, 52])
    with pytest.raises(RuntimeError, match="for operand 0 for which an ellipsis was already found"):
        flambeau.einsum(a, [..., ..., 0])


@pytest.mark.parametrize(("equation", "shapes", "strides", "node"), [
    ("cda->cda", [(1, 5, 3)], (15, 3, 1), "Permute"),           # as PyTorch gives them
    ("ab->b", [(2, 3)], (1,), "Sum"), ("a,b->", [(4,), (3,)], (), "View"),
    ("cd,c->d", [(1, 2), (5,)], (1,), "View"), ("de,b->be", [(1, 4), (1,)], (4, 1), "View"),
    ("eac,d->adec", [(1, 2, 5), (2,)], (5, 10, 10, 1), "Mul"),
    ("bd,ec,abe->beca", [(3, 1), (2, 1), (2, 3, 2)], (2, 1, 2, 6), "View"),
    ("d,bac->ca", [(5,), (2, 2, 3)], (2, 1), "View"),
    ("ij,kj->ki", [(2, 3), (4, 3)], (2, 1), "View"),
    ("d,cad,cb->bdc", [(2,), (2, 2, 2), (2, 4)], (1, 4, 8), "View")])
def test_layouts_and_last_nodes(equation, shapes, strides, node, monkeypatch):
    monkeypatch.setattr(flambeau.backends.opt_einsum, "enabled", False)
    x = flambeau.einsum(equation, *[flambeau.ones(s, requires_grad=True) for s in shapes])
    assert x.grad_fn.name()[:-len("Backward0")] == node
    kept = [(s, n) for s, n, extent in zip(x.stride(), strides, x.shape) if extent > 1]
    assert [s for s, _ in kept] == [n for _, n in kept]
    assert (x._base is None) == (node in ("Mul", "Sum"))


def test_what_is_known_of_an_equation_belongs_to_the_shapes():
    sizes = [((2, 3), (3, 4)), ((1, 3), (3, 4)), ((2, 1), (3, 4)), ((2, 3), (1, 1)),
             ((0, 3), (3, 2))]
    for first, second in sizes * 2:
        x, y = flambeau.randn(first), flambeau.randn(second)
        expected = x.expand(first[0], max(first[1], second[0])) @ y.expand(
            max(first[1], second[0]), second[1])
        assert flambeau.allclose(flambeau.einsum("ij,jk", x, y), expected, atol=1e-6)
        with pytest.raises(RuntimeError, match="does not broadcast with previously seen size"):
            flambeau.einsum("ij,jk", x, flambeau.ones(7, 2)) if first[1] > 1 \
                else flambeau.einsum("ij,jk,jl", x, y, flambeau.ones(7, 2))


# ---- samples ------------------------------------------------------------------------------------

family = Samples()


def equation(text, *shapes):
    return lambda r: [call(text, *[r.rng.randn(*s) for s in shapes]),
                      call(text, *[r.complex(*s) for s in shapes])]


EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ii", (3, 3)), ("ii->i", (3, 3)),
    ("ij->ji", (2, 3)), ("ba", (2, 3)), ("i,j->ij", (2,), (3,)), ("i,i->", (3,), (3,)),
    ("bij,bjk->bik", (2, 2, 3), (2, 3, 4)), ("...ij,...jk->...ik", (5, 1, 2, 3), (4, 3, 2)),
    ("bn,anm,bm->ba", (2, 3), (4, 3, 5), (2, 5)), ("i...->...", (2, 3, 4)), ("ij,ij->ij", (2, 3),
                                                                            (2, 3)),
    ("ij,kl->", (2, 3), (2, 2)), ("iij,jk->ki", (2, 2, 3), (3, 4)), ("ij->", (2, 3)),
    ("abc,cd,de,ef->abf", (2, 2, 3), (3, 2), (2, 3), (3, 2)), ("ij,ij->j", (2, 3), (1, 3)),
    ("i...j,j->...i", (2, 4, 3), (3,)), ("iijj->ij", (2, 2, 3, 3)), ("->", ()),
    ("...,...", (2, 3), (3,)), ("aBc,cD->aBD", (2, 3, 2), (2, 2)),
]


@family("einsum")
def _(r):
    calls = [c for e in EQUATIONS for c in equation(*e)(r)]
    calls.append(call(r.real(2, 3), [0, 1], r.real(3, 4), [1, 2], [2, 0]))
    calls.append(call(r.real(2, 3), [1, 0]))
    return calls


class TestSamples(SampleTests):
    family = family
