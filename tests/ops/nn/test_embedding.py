"""Layers that `flambeau/ops/nn/embedding.py` computes."""
import pytest
from layer_tests import LayerTests
from layers import Cases

import flambeau
from flambeau import func

cases = Cases()


@cases("embedding")
def _(torch, make):
    return torch.nn.functional.embedding(make.integers(5, 2, 3), make(5, 3), padding_idx=1)


@cases("embedding_frequency")
def _(torch, make):
    return torch.nn.functional.embedding(make.integers(3, 8), make(4, 2), scale_grad_by_freq=True)


class TestLayers(LayerTests):
    cases = cases


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


@pytest.mark.parametrize("mode", [None, "sum"])
def test_rows_that_are_shortened_pass_their_tangents_on(mode):
    weight = flambeau.arange(1.0, 9.0).reshape(4, 2)
    rows = flambeau.tensor([[0, 1], [2, 2]])

    def looked_up(weight):
        functional = flambeau.nn.functional
        return functional.embedding(rows, weight, max_norm=1.0) if mode is None else \
            functional.embedding_bag(rows, weight, max_norm=1.0, mode=mode)
    _, tangent = func.jvp(looked_up, (weight,), (flambeau.ones(4, 2),))
    assert (tangent == (1 if mode is None else 2)).all()
    assert weight.norm(2, 1).allclose(flambeau.tensor([1, 1, 1, 113**0.5]))
