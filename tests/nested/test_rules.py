"""What both layouts of nested tensors have: nodes, vmap, files, attention, parts of others."""
import pytest

import flambeau as torch
from flambeau import nested

A, B = torch.arange(6.0).reshape(2, 3), torch.arange(12.0).reshape(4, 3) - 5


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
@pytest.mark.parametrize("function, node", [
    (lambda x: x.unbind()[0], "UnbindBackwardAutogradNestedTensor0"),
    (lambda x: x[0], "SelectBackwardAutogradNestedTensor0"),
    (lambda x: x.to_padded_tensor(0.0), "ToPaddedTensorBackward0"),
    (lambda x: x.softmax(-1), "SoftmaxBackward0"),
    (lambda x: x.transpose(1, 2), "TransposeBackward0"),
    (lambda x: x.sum(-1, keepdim=True), "SumBackwardAutogradNestedTensor1"),
    (lambda x: x.chunk(3, -1)[0], "ChunkBackwardAutogradNestedTensor0"),
    (lambda x: x.reshape(2, -1, 1, 3), "ViewBackwardAutogradNestedTensor0"),
    (lambda x: torch.nn.functional.linear(x, A), "LinearBackward0"),
    (lambda x: x.bmm(torch.ones(2, 3, 1)), "BmmBackward0")])
def test_nodes_are_those_of_ops_on_the_whole(layout, function, node):
    """Their gradients are those of the parts."""
    x = nested.nested_tensor([A, B], layout=layout, requires_grad=True)
    found = function(x)
    assert type(found.grad_fn).__name__ == node
    pieces = found.unbind() if found.is_nested else [found]
    grad, = torch.autograd.grad(sum((p ** 2).sum() for p in pieces), x)
    assert grad.is_nested and grad.layout is layout
    def value(y):
        z = function(y)
        return sum((p ** 2).sum() for p in (z.unbind() if z.is_nested else [z]))

    start, step = x.detach(), x.detach().cos() * 0.05
    by_steps = (value(start + step) - value(start - step)) / 2
    along = sum((g * s).sum() for g, s in zip(grad.unbind(), step.unbind()))
    torch.testing.assert_close(along, by_steps, rtol=1e-2, atol=1e-3)


def test_values_are_what_a_tensor_was_made_of():
    values = torch.arange(8.0).reshape(4, 2).requires_grad_()
    x = nested.nested_tensor_from_jagged(values * 1, torch.tensor([0, 1, 4]), min_seqlen=1,
                                         max_seqlen=7)
    assert type(x.grad_fn).__name__ == "NestedViewFromJaggedBackward0"
    assert type(x.values().grad_fn).__name__ == "NestedGetValuesBackward0"
    assert (x._min_seqlen, x._max_seqlen) == (1, 7)
    x.values().sum().backward()
    assert (values.grad == 1).all()


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_vmap_maps_the_parts(layout):
    x = nested.nested_tensor([A, B], layout=layout)
    found = torch.vmap(lambda part: (part * 2).sum())(x)
    assert found.is_nested and [p.item() for p in found.unbind()] == [2 * A.sum(), 2 * B.sum()]
    for part, given in zip(torch.vmap(torch.sin)(x).unbind(), (A, B)):
        torch.testing.assert_close(part, given.sin())


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_files_are_data(tmp_path, layout):
    torch.save(nested.nested_tensor([A, B], layout=layout), tmp_path / "x.pt")
    found = torch.load(tmp_path / "x.pt")
    assert found.layout is layout
    for part, given in zip(found.unbind(), (A, B), strict=True):
        assert torch.equal(part, given)


def test_attention_pads_weights():
    layer = torch.nn.MultiheadAttention(4, 2, batch_first=True).eval()
    parts = [torch.randn(3, 4), torch.randn(1, 4)]
    x = nested.nested_tensor(parts)
    with torch.inference_mode():
        result, weights = layer(x, x, x)
        for found, weight, part in zip(result.unbind(), weights, parts):
            wanted, seen = layer(part[None], part[None], part[None])
            torch.testing.assert_close(found, wanted[0])
            torch.testing.assert_close(weight[:len(part), :len(part)], seen[0])
            assert not weight[len(part):].any() and not weight[:, len(part):].any()


def test_parts_of_padded_tensors():
    padded = torch.arange(12.0).reshape(2, 3, 2)
    mask = torch.tensor([[True, False, False], [True, True, False]])
    assert [len(p) for p in torch._nested_tensor_from_mask(padded, mask).unbind()] == [1, 2]
    with pytest.raises(RuntimeError, match="left-aligned"):
        torch._nested_tensor_from_mask(padded, ~mask)
    sizes = torch.tensor([[1, 2], [3, 1]])
    assert [p.shape for p in torch._nested_from_padded(padded, sizes).unbind()] == [(1, 2), (3, 1)]
