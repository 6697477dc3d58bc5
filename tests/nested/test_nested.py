"""Nested tensors against their parts."""
import copy
import pickle

import pytest

import flambeau as torch
from flambeau import nested
from flambeau.nn import functional as F

A, B = torch.arange(6.0).reshape(2, 3), torch.arange(12.0).reshape(4, 3) - 5
LAYOUTS = pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
WEIGHT = torch.arange(6.0).reshape(2, 3) / 7


def make(layout, requires_grad=False):
    return nested.nested_tensor([A, B], layout=layout, requires_grad=requires_grad)


def same(result, wanted):
    assert result.is_nested and len(result) == len(wanted)
    for part, expected in zip(result.unbind(), wanted):
        torch.testing.assert_close(part, expected)


def test_printed_forms():
    x = nested.nested_tensor([A[0], B[0, :2]], requires_grad=True)
    assert repr(x) == ("nested_tensor([\n  tensor([0., 1., 2.], requires_grad=True),\n"
                       "  tensor([-5., -4.], requires_grad=True)\n], requires_grad=True)")
    x = make(torch.jagged)
    length = x.shape[1]
    assert isinstance(length, torch.SymInt) and repr(length)[0] == "j"
    assert repr(x) == (f"NestedTensor(size=(2, {length}, 3), offsets=tensor([0, 2, 6]), "
                       "contiguous=True)")


@LAYOUTS
def test_questions(layout):
    x = make(layout)
    assert (x.dim(), x.ndim, x.numel(), x.dtype, x.layout) == (3, 3, 18, torch.float32, layout)
    assert x.size(0) == 2 and x.size(-1) == 3 and torch.is_tensor(x) and not A.is_nested
    same(x, [A, B])
    assert torch.equal(x[1], B) and torch.equal(x.select(0, -1), B)
    for again in (pickle.loads(pickle.dumps(x)), x.clone(), x.detach()):
        same(again, [A, B])
    if layout is torch.strided:
        with pytest.raises(RuntimeError, match="sizes"):
            _ = x.shape
        with pytest.raises(RuntimeError, match="irregular"):
            x.size(1)
        with pytest.raises(NotImplementedError, match="new_empty"):
            copy.deepcopy(x)
        assert type(x).__name__ == "Tensor" and x.__class__ is torch.Tensor
    else:
        same(copy.deepcopy(x), [A, B])
        assert x.offsets().tolist() == [0, 2, 6] and x.lengths() is None
        assert x.shape == (x * 2).shape and x.shape != make(layout).shape
        assert torch.equal(x.values(), torch.cat([A, B]))


CALLS = {
    "plus": lambda x: x + 1, "from": lambda x: 1 - x, "product": lambda x: x * x, "sin": torch.sin,
    "relu": F.relu, "double": lambda x: x.double(), "greater": lambda x: x > 0,
    "where": lambda x: torch.where(x > 0, x, -x), "fill": lambda x: x.masked_fill(x < 0, 9),
    "row": lambda x: x + torch.ones(3), "linear": lambda x: F.linear(x, WEIGHT),
    "matmul": lambda x: x @ WEIGHT.t(), "softmax": lambda x: x.softmax(-1),
    "norm": lambda x: F.layer_norm(x, (3,)), "sum": lambda x: x.sum(-1),
    "transpose": lambda x: x.transpose(-1, -2), "unsqueeze": lambda x: x.unsqueeze(-1)}


REFUSED = {         # with layout `strided`
    "from": "NestedTensorCPU", "fill": "NestedTensorCPU", "where": "NestedTensorCPU|must not be",
    "row": "Expected both self and other to be nested", "matmul": "Expected both to be nested",
    "norm": "requires weight and bias", "sum": "always requires keepdim=True"}


@LAYOUTS
@pytest.mark.parametrize("name", CALLS)
def test_calls_are_those_of_the_parts(layout, name):
    if layout is torch.strided and name in REFUSED:
        with pytest.raises((NotImplementedError, RuntimeError, ValueError), match=REFUSED[name]):
            CALLS[name](make(layout))
        return
    result = CALLS[name](make(layout))
    same(result, [CALLS[name](A), CALLS[name](B)])
    assert result.layout is layout


@LAYOUTS
def test_calls_that_name_dimensions(layout):
    x = make(layout)
    same(x.chunk(3, -1)[1], [A[:, 1:2], B[:, 1:2]])
    same(x.reshape(2, -1, 1, 3), [A[:, None], B[:, None]])
    if layout is torch.strided:
        with pytest.raises(NotImplementedError, match="aten::permute"):
            x.permute(0, 2, 1)
        same(x.bmm(x.transpose(1, 2)), [A @ A.t(), B @ B.t()])
        same(torch.cat([x, x]), [A, B, A, B])
    else:
        same(x.permute(0, 2, 1), [A.t(), B.t()])
    same(torch.zeros_like(x), [A * 0, B * 0])
    assert x.mul_(2) is x
    same(x, [A * 2, B * 2])


def test_reductions_of_what_varies():
    x = make(torch.jagged)
    assert torch.equal(x.sum(1), torch.stack([A.sum(0), B.sum(0)]))
    assert x.sum() == A.sum() + B.sum() and x.max() == B.max()
    torch.testing.assert_close(x.sum((0, 1)), A.sum(0) + B.sum(0))
    torch.testing.assert_close(x.mean((0, 1, 2)), torch.cat([A, B]).mean())
    with pytest.raises(RuntimeError, match="along a ragged and non-batch dimension is not"):
        x.sum((1, 2))
    with pytest.raises(RuntimeError, match="along the batch dimension but not the ragged"):
        x.mean(0)


def test_largest_elements_and_where_they_are():
    values, indices = make(torch.jagged).max(-1)
    same(values, [A.max(-1)[0], B.max(-1)[0]])
    same(indices, [A.max(-1)[1], B.max(-1)[1]])


def test_tensors_of_one_length_stand_side_by_side():
    x = make(torch.jagged)
    same(torch.cat([x, x * 2], -1), [torch.cat([A, A * 2], 1), torch.cat([B, B * 2], 1)])
    same(torch.stack([x, x * 2], 2), [torch.stack([A, A * 2], 1), torch.stack([B, B * 2], 1)])
    for dim, place in ((0, "dim=0"), (1, "ragged dim")):
        with pytest.raises(RuntimeError, match=rf"cat.*not supported .* on {place}"):
            torch.cat([x, x], dim)
    with pytest.raises(RuntimeError, match=r"add\.Tensor with inputs of shapes \(2, j\d+, 3"):
        x + make(torch.jagged)
    with pytest.raises(RuntimeError, match=r"flatten.*ragged dim"):
        x.flatten(1, 2)
    with pytest.raises(RuntimeError, match="do not accept nested tensors"):
        nested.nested_tensor([x, x])


def test_places_behind_what_varies():
    x = make(torch.jagged)
    same(x[..., :2], [A[:, :2], B[:, :2]])
    with pytest.raises(RuntimeError, match=r"slice\(\): not supported .* on dim=0"):
        x[:, :, 1:]
    assert x.stride()[1:] == (3, 1) and x.stride(-1) == 1


def test_embeddings_of_each_part():
    weight = torch.arange(10.0).view(5, 2).requires_grad_()
    parts = [torch.tensor([1, 4]), torch.tensor([0])]
    x = nested.nested_tensor(parts, layout=torch.jagged)
    found = torch.nn.functional.embedding(x, weight)
    same(found, [weight[part] for part in parts])
    found.sum().backward()
    assert weight.grad.tolist() == [[1, 1], [1, 1], [0, 0], [0, 0], [1, 1]]


@LAYOUTS
def test_padding(layout):
    padded = nested.to_padded_tensor(make(layout), -1.0)
    assert padded.shape == (2, 4, 3) and torch.equal(padded[1], B)
    assert torch.equal(padded[0, :2], A) and (padded[0, 2:] == -1).all()
    assert make(layout).to_padded_tensor(0.0, (2, 5, 3)).shape == (2, 5, 3)
    if layout is torch.jagged:
        assert torch.equal(make(layout).to_padded_tensor(0.0, (2, 3, 3))[1], B[:3])
        return
    with pytest.raises(RuntimeError, match="output_size"):
        make(layout).to_padded_tensor(0.0, (2, 3, 3))


@LAYOUTS
def test_gradients(layout):
    a, b = (t.clone().requires_grad_() for t in (A, B))
    nested.to_padded_tensor(nested.as_nested_tensor([a, b], layout=layout).sin(),
                            0.0).sum().backward()
    torch.testing.assert_close(a.grad, A.cos())
    torch.testing.assert_close(b.grad, B.cos())
    x = make(layout, requires_grad=True)
    assert x.is_leaf and x.grad is None
    (x * x).unbind()[1].sum().backward()
    same(x.grad, [A * 0, 2 * B])


def test_from_jagged():
    values = torch.arange(20.0).reshape(10, 2)
    offsets = torch.tensor([0, 3, 5, 10])
    x = nested.nested_tensor_from_jagged(values, offsets)
    same(x, [values[:3], values[3:5], values[5:]])
    x[0].fill_(9)
    assert (values[:3] == 9).all()
    same(nested.nested_tensor_from_jagged(values, lengths=torch.tensor([4, 6])),
         [values[:4], values[4:]])
    same(nested.nested_tensor_from_jagged(values, offsets, torch.tensor([2, 1, 3])),
         [values[:2], values[3:4], values[5:8]])
    y = nested.nested_tensor_from_jagged(values.t(), torch.tensor([0, 4, 10]), jagged_dim=2)
    same(y, [values.t()[:, :4], values.t()[:, 4:]])


def test_parts_of_ordinary_tensors():
    whole = torch.arange(24.0).reshape(2, 4, 3)
    same(nested.narrow(whole, 1, torch.tensor([0, 1]), torch.tensor([2, 3]), layout=torch.jagged),
         [whole[0, :2], whole[1, 1:4]])
    parts = nested.narrow(torch.ones(2, 5), 1, torch.tensor([0, 1]), torch.tensor([2, 3]),
                          layout=torch.jagged)
    assert parts.offsets().tolist() == [0, 6, 9]        # the last ends where its part does
    same(nested.narrow(whole, 1, 1, 2), [whole[0, 1:3], whole[1, 1:3]])
    mask = torch.tensor([[True, False, True], [True, True, True]])
    same(nested.masked_select(A, mask), [A[0, ::2], A[1]])
    same(nested.as_nested_tensor(A), [A[0], A[1]])


@pytest.mark.parametrize("call, error, text", [
    (lambda: nested.nested_tensor(3), TypeError, "Only lists"),
    (lambda: nested.nested_tensor([A, A[0]]), RuntimeError, "same dimension"),
    (lambda: nested.nested_tensor([A, A.t()], layout=torch.jagged), RuntimeError, "single ragged"),
    (lambda: nested.nested_tensor_from_jagged(A), RuntimeError, "At least one of"),
    (lambda: make(torch.strided) + nested.nested_tensor([A, A]), RuntimeError, "broadcasting"),
    (lambda: make(torch.jagged).cumsum(0), NotImplementedError, "aten.cumsum.default"),
    (lambda: make(torch.jagged).sort(), NotImplementedError, "aten.sort.default"),
    (lambda: nested.to_padded_tensor(A, 0.0), NotImplementedError,
     "Could not run 'aten::to_padded_tensor'"),
    (lambda: make(torch.jagged).numpy(), RuntimeError, "numpy")])
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_plain_facts():
    for layout in (torch.strided, torch.jagged):
        x = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=layout)
        assert not x.is_conj() and not x.is_neg() and not x.is_inference()


def test_only_jagged_tensors_override_functions():
    part = [torch.ones(2, 3)]
    asked = torch.overrides.has_torch_function
    assert not asked((nested.nested_tensor(part), torch.ones(1)))
    assert asked((nested.nested_tensor(part, layout=torch.jagged),))
