"""No op is called once for each slice."""
import pytest

import flambeau as torch
from flambeau.core.op import table
from flambeau.func import grad, jacfwd, jacrev, vmap
from flambeau.transforms import batching

X = torch.tensor([[1.0, -2.0, 3.0], [-4.0, 5.0, 6.0]])
NUMBERS = torch.arange(3.0)
ZERO = torch.tensor(0)
ALSO = torch.tensor([[2, 0, 1], [1, 1, 1]])

# what levels never see: `vmap` computes these otherwise, random numbers for all slices at once
NEVER = {"_one_hot", "_max_pool1d_values", "conj_view", "negative_view"}


@pytest.fixture
def looped(monkeypatch):
    found, plain = [], batching._batch_by_loop

    def loop(op, size, *rest):
        found.append(op.key or op.name)
        return plain(op, size, *rest)
    monkeypatch.setattr(batching, "_batch_by_loop", loop)
    return found


def test_every_op_says_how_it_is_batched():
    silent = {name for name, op in table.items() if not (
        op.composite or op.functional or op.kind == "pointwise" or op.core or op.dims or op.shapes
        or op.batch_rule is not None or op.parts is not None)}
    assert {name for name in silent if not name.endswith("_sample")} <= NEVER


CALLS = {
    "masked_select": lambda x: x.masked_select(x > 0),
    "masked_select, one mask": lambda x: x.masked_select(torch.tensor([True, False, True])),
    "masked_select, one tensor": lambda x: torch.ones(2, 3).masked_select(x > 0),
    "mask": lambda x: x[x > 0],
    "mask and places": lambda x: torch.stack([x, x], 1)[x > 0, torch.tensor([0, 1])],
    "write by mask": lambda x: x.index_put((x > 0,), torch.tensor(9.0)),
    "write by one mask": lambda x: x.index_put((torch.tensor([True, False, True]),), x[:2]),
    "nonzero": lambda x: (x > 0).nonzero(),
    "where": lambda x: torch.where(x > 0)[0],
    "repeat_interleave": lambda x: torch.repeat_interleave((x > 0).long()),
    "repeat_interleave, counts": lambda x: torch.repeat_interleave(x, (x > 0).long()),
    "bincount": lambda x: torch.bincount((x > 0).long()),
    "bincount, weights": lambda x: torch.bincount((x > 0).long(), x),
    "unique": lambda x: torch.stack([*(x > 0).long().unique(return_inverse=False)]),
    "unique, counts": lambda x: torch.unique((x > 0).long(), return_counts=True)[1],
    "unique, inverse": lambda x: torch.unique((x > 0).long(), return_inverse=True)[1],
    "unique_consecutive": lambda x: (x[:2] > -9).unique_consecutive(),
    "unique of slices": lambda x: torch.cat([x.sign(), x.sign()]).view(2, 3).unique(dim=0),
    "unique of slices, counts": lambda x: torch.stack([x, x, x.abs()], 1).unique(
        dim=1, return_counts=True)[1],
    "unique of slices, inverse": lambda x: torch.stack([x, -x, x], 1).unique(
        dim=1, return_inverse=True)[1],
    "unique_consecutive of slices": lambda x: torch.stack([x, x, -x, x]).unique_consecutive(dim=0),
    "nonzero_static": lambda x: torch.nonzero_static(x > 0, size=2),
    "nonzero_static, filled": lambda x: torch.stack([x, x]).clamp(min=0).nonzero_static(
        size=5, fill_value=-7),
    "nonzero_static of a number": lambda x: torch.nonzero_static(x[0] > 0, size=2),
    "histogram": lambda x: torch.histogram(x, 3, range=(-1.0, 5.0), weight=x.abs())[0],
    "histogram, edges": lambda x: torch.histogram(x, torch.tensor([-5.0, 0.0, 4.0, 9.0]))[0],
    "histogram, own range": lambda x: torch.stack(torch.histogram(x, 2)[1:]),
    "histogram's gradient": grad(lambda x: torch.histogram(
        torch.arange(3.0), 2, weight=x).hist.pow(2).sum()),
    "histogramdd": lambda x: torch.histogramdd(torch.stack([x, -x], 1), [2, 3])[0],
    "bucketize": lambda x: torch.bucketize(x, torch.tensor([0.0, 2.0])),
    "bucketize, boundaries": lambda x: torch.bucketize(torch.ones(2, 2), x.sort()[0], right=True),
    "searchsorted": lambda x: torch.searchsorted(torch.tensor([0.0, 2.0]), x),
    "searchsorted, both": lambda x: torch.searchsorted(x.sort()[0], x),
    "searchsorted, rows": lambda x: torch.searchsorted(x.sort()[0].expand(2, 3), x.expand(2, 3)),
    "isin": lambda x: torch.isin(x, torch.tensor([1.0, 5.0, 7.0] * 9)),
    "isin, tests": lambda x: torch.isin(torch.arange(6.0).view(2, 3), x.repeat(9)),
    "_lazy_clone": lambda x: x._lazy_clone() + 1,
    "view_copy": lambda x: torch.view_copy(x, dtype=torch.int32) * 2,
    "one_hot": lambda x: torch.nn.functional.one_hot((x > 0).long(), 3),
    "max_pool1d": lambda x: torch.nn.functional.max_pool1d(x[None], 2),
    "gather's gradient": grad(lambda x: x.gather(0, torch.tensor([0, 0, 2])).pow(2).sum()),
    "unbind's gradient": grad(lambda x: x.unbind()[0] * x.unbind()[1].sin()),
    "index's gradient": grad(lambda x: x[torch.tensor([0, 0, 2])].pow(2).sum()),
    "a mask's gradient": grad(lambda x: x[x > 0].pow(2).sum()),
    "masked_select's gradient": grad(lambda x: x.masked_select(x > 0).pow(2).sum()),
    "jacrev": jacrev(lambda x: x[x > 0].sin()),
    "jacfwd": jacfwd(lambda x: x[x > 0].sin()),
    "gather of a number's place": lambda x: x.gather(0, ZERO),
    "index_select of one place": lambda x: x.index_select(0, ZERO),
    "scatter of one number": lambda x: x.scatter_add(0, ZERO, x.sum()),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_that_depend_on_values(name, looped):
    found = vmap(CALLS[name])(X)
    assert not looped
    torch.testing.assert_close(found, torch.stack([CALLS[name](row) for row in X]))
    nested = vmap(vmap(CALLS[name]))(torch.stack([X, X.flip(0)]))
    torch.testing.assert_close(nested, torch.stack([found, found.flip(0)]))


ON_NUMBERS = {
    "sum": lambda x: x.sum(0), "softmax": lambda x: x.softmax(0), "cumsum": lambda x: x.cumsum(0),
    "gather": lambda x: x.gather(0, ZERO), "scatter": lambda x: x.scatter(0, ZERO, x * 2),
    "scatter_add": lambda x: x.scatter_add(0, ZERO, x * 2), "max": lambda x: x.max(0)[0],
    "index_select": lambda x: x.index_select(0, ZERO), "sort": lambda x: x.sort(0)[0],
    "index_add": lambda x: x.index_add(0, ZERO, x), "median": lambda x: x.median(0)[0],
}


@pytest.mark.parametrize("name", ON_NUMBERS)
def test_slices_that_are_numbers(name, looped):
    found = vmap(ON_NUMBERS[name])(NUMBERS)
    assert not looped
    torch.testing.assert_close(found, torch.stack([ON_NUMBERS[name](x) for x in NUMBERS]))


def test_slices_with_different_counts_are_refused():
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size, but got "
                                           r"\[2\] at entry 0 and \[1\] at entry 1"):
        vmap(lambda x: x[x > 2])(torch.tensor([[1.0, 3.0, 4.0], [0.0, 1.0, 3.0]]))


def test_layer_norm_and_attention_are_one_call_for_all_slices():
    x, w = torch.randn(2, 3, 5, 4), torch.randn(4)
    norm = torch.nn.functional.layer_norm
    torch.testing.assert_close(vmap(lambda x: norm(x, (4,), w))(x), norm(x, (4,), w))
    q, k, v = torch.randn(3, 2, 3, 2, 5, 4).unbind()
    attend = torch.nn.functional.scaled_dot_product_attention

    def loss(q, k, v):
        return attend(q, k, v, is_causal=True).pow(2).sum()
    found = vmap(grad(loss, (0, 1, 2)))(q, k, v)
    for i in range(2):
        expected = grad(loss, (0, 1, 2))(q[i], k[i], v[i])
        for f, e in zip(found, expected, strict=True):
            torch.testing.assert_close(f[i], e)

