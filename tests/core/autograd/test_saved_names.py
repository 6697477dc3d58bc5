"""The names of what nodes saved, as PyTorch shows them."""
import flambeau
from flambeau import nn


def test_what_was_freed_says_so():
    import pytest

    x = flambeau.ones(2, requires_grad=True)
    y = x.exp()
    assert y.grad_fn._saved_result.equal(y)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        y.grad_fn._saved_result


def test_names_that_nodes_do_not_have():
    node = (flambeau.ones(2, requires_grad=True) * 2).grad_fn
    assert not hasattr(node, "_saved_nothing") and not hasattr(node, "_raw_saved_nothing")
    assert {"_saved_self", "_saved_other"} <= set(dir(node))


def test_saved_values_have_the_names_of_pytorch():
    x, rows = flambeau.ones(2, 3, requires_grad=True), flambeau.tensor([0, 1])
    batch = flambeau.ones(1, 3, 3, requires_grad=True)
    shown = [
        (x[:, rows], "indices", (None, rows)), (x[:, rows], "self_sym_sizes", (2, 3)),
        (x.mean(), "self_sym_sizes", (2, 3)), (x.sum(0), "self_sym_numel", 6),
        (flambeau.addbmm(batch[0], batch, batch), "batch1_sym_argsize_1", 3),
        (flambeau.nn.functional.unfold(batch[None], 3), "self_sym_argsize_minus_2", 3),
        (x.logit(), "eps", None), (x.logit(0.5), "eps", 0.5),
        (x.div(2, rounding_mode="trunc"), "rounding_mode", "trunc"),
        (x.as_strided((3,), (1,), 1), "storage_offset", 1), (x.permute(1, 0), "dims", (1, 0)),
        (x.as_strided((3,), (1,)), "storage_offset", None),
        (x.squeeze(1), "dim", 1), (x.squeeze((0, 1)), "dim", (0, 1)), (x.unsqueeze(-1), "dim", 2),
        (x.split([1, 2], 1)[0], "split_sizes", (1, 2)), (x.split(2, 1)[0], "split_size", 2),
        (batch.unfold(2, 2, 1), "dimension", 2),
        (nn.functional.interpolate(batch, 6, mode="linear"), "output_size", (6,)),
        (nn.functional.interpolate(batch, scale_factor=2.0), "scales", 2.0),
        (nn.functional.interpolate(batch[None], scale_factor=(2.0, 3.0)), "scales_w", 3.0),
        (nn.functional.conv1d(batch, flambeau.ones(2, 3, 1)), "bias_sym_sizes_opt", (0,)),
        (nn.functional.conv1d(batch, flambeau.ones(2, 3, 1), flambeau.ones(2)),
         "bias_sym_sizes_opt", (2,)),
        (nn.functional.max_pool2d(batch[None], 2), "kernel_size", (2, 2)),
        (nn.functional.mse_loss(x, x), "reduction", 1),
        (nn.functional.elu(x, 0.5), "alpha", 0.5),
        (flambeau._foreach_maximum([x, x], [0.0, 1.0])[0], "scalars", (0.0, 1.0)),
    ]
    for result, name, value in shown:
        found = getattr(result.grad_fn, f"_saved_{name}")
        assert str(found) == str(value) and type(found) is type(value), name
        assert not hasattr(result.grad_fn, "_saved_nothing_sym_sizes")
    assert x.max(0)[0].grad_fn._saved_indices.tolist() == [0, 0, 0]
    assert x.sort(0)[0].grad_fn._saved_indices.tolist() == [[0, 0, 0], [1, 1, 1]]
    _, s, vh = flambeau.linalg.svd(x, full_matrices=False)
    assert s.grad_fn._saved_S.equal(s) and s.grad_fn._saved_Vh.equal(vh)
    assert flambeau.nn.functional.gelu(x).grad_fn._saved_self is x
    assert "_saved_self_sym_sizes" in dir(x.sum().grad_fn)
    assert "_saved_indices" in dir(x[:, rows].grad_fn)
