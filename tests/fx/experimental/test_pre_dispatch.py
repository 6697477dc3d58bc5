"""Tracing above autograd."""
import pytest

import flambeau as torch
from flambeau.fx.experimental.proxy_tensor import make_fx
from flambeau.nn import functional as F

aten = torch.ops.aten
X = torch.arange(4.0).view(2, 2)


def targets(function, **options):
    graph = make_fx(function, **options)(X)
    torch.testing.assert_close(graph(X), function(X))
    return [n.target for n in graph.graph.nodes if n.op == "call_function"]


@pytest.mark.parametrize(("function", "above", "below"), [
    (lambda x: F.linear(x, x), [aten.linear.default], [aten.t.default, aten.mm.default]),
    (lambda x: x.reshape(4), [aten.reshape.default], [aten.view.default]),
    (lambda x: torch.matmul(x, x), [aten.matmul.default], [aten.mm.default]),
    (lambda x: x + 1, [aten.add.Tensor], [aten.add.Tensor]),
    (lambda x: F.dropout(x, 0.5, False), [aten.dropout.default], []),
])
def test_ops_made_of_others_are_kept(function, above, below):
    assert targets(function, pre_dispatch=True) == above
    if below:
        assert targets(function) == below


@pytest.mark.parametrize(("function", "names"), [
    (lambda x: F.layer_norm(x, (2,)), "layer_norm"),
    (lambda x: F.batch_norm(x, None, None, training=True), "batch_norm"),
    (lambda x: F.group_norm(x, 1), "group_norm"),
    (lambda x: F.cross_entropy(x, x), "cross_entropy_loss"),
    (lambda x: torch.einsum("ij,kj->ik", x, x), "einsum"), (lambda x: F.pad(x, (1, 1)), "pad"),
    (lambda x: F.normalize(x), "linalg_vector_norm clamp_min expand_as div"),
    (lambda x: F.interpolate(x[None], scale_factor=2.0), "unsqueeze upsample_nearest1d"),
    (lambda x: x.contiguous() + x.t().contiguous(), "t contiguous add"),
    (lambda x: F.scaled_dot_product_attention(x, x, x), "scaled_dot_product_attention"),
])
def test_functions_in_python_are_those_that_they_call(function, names):
    assert [target._opname if hasattr(target, "_opname") else target.__name__.partition(".")[0]
            for target in targets(function, pre_dispatch=True)] == names.split()
