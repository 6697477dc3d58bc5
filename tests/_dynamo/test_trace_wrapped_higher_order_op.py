"""Indexing by batched tensors."""
import flambeau as torch
from flambeau._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex


def test_indices_may_be_batched_inside():
    x = torch.arange(6).reshape(2, 3)
    with TransformGetItemToIndex():
        found = torch.vmap(lambda i: x[1][i] + x[i % 2, 0])(torch.arange(3))
    assert found.tolist() == [3, 7, 5]


def test_errors_pass():
    try:
        with TransformGetItemToIndex():
            raise KeyError("inside")
    except KeyError as error:
        assert error.args == ("inside",)
