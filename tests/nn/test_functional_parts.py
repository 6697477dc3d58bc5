"""The parts of functions that layers written elsewhere use: recorded from PyTorch 2.13."""

import pytest

import flambeau as torch
from flambeau.nn import functional as F

Q = torch.tensor([[1.0, 2.0]])
W = torch.arange(12.0).view(6, 2)


def shape(*sizes):
    return torch.ones(*sizes)


def test_attention_projects_its_inputs():
    assert [x.tolist() for x in F._in_projection_packed(Q, Q, Q, W)] == [
        [[2.0, 8.0]], [[14.0, 20.0]], [[26.0, 32.0]]]
    assert [x.tolist() for x in F._in_projection_packed(Q, Q * 2, Q * 3, W, torch.ones(6))] == [
        [[3.0, 9.0]], [[29.0, 41.0]], [[79.0, 97.0]]]
    assert [x.tolist() for x in F._in_projection(Q, Q, Q, W[:2], W[2:4], W[4:])] == [
        [[2.0, 8.0]], [[14.0, 20.0]], [[26.0, 32.0]]]
    with pytest.raises(AssertionError, match=r"expecting key weights shape of \(2, 2\), but got"):
        F._in_projection(Q, Q, Q, W[:2], W[2:5], W[4:])
    with pytest.raises(AssertionError, match=r"expecting query bias shape of \(2,\), but got"):
        F._in_projection(Q, Q, Q, W[:2], W[2:4], W[4:], torch.ones(3))


def test_attention_checks_shapes():
    batch, single = shape(2, 3, 4), shape(2, 4)
    assert F._mha_shape_check(batch, batch, batch, None, None, 2) is True
    assert F._mha_shape_check(single, single, single, None, None, 2) is False
    with pytest.raises(AssertionError, match="unbatched 2D or batched 3D tensor but received 1-D"):
        F._mha_shape_check(shape(2), single, single, None, None, 2)
    F._check_key_padding_mask(shape(2, 3), 3, 2)
    with pytest.raises(AssertionError, match=r"key_padded_mask.shape\[1\] to be 2, but got 3"):
        F._check_key_padding_mask(shape(2, 3), 2, 2)


def test_sizes_of_normalisation():
    F._verify_batch_size([2, 3])
    F._verify_spatial_size([1, 3, 2])
    with pytest.raises(ValueError, match=r"more than 1 value per channel.*\[1, 3, 1\]"):
        F._verify_batch_size([1, 3, 1])
    with pytest.raises(ValueError, match=r"more than 1 spatial element.*\[1, 3, 1\]"):
        F._verify_spatial_size([1, 3, 1])


def test_sizes_of_unpooling():
    x = shape(1, 1, 4)
    for given, expected in ((None, [8]), ([9], [9]), ([1, 1, 9], [9])):
        assert F._unpool_output_size(x, [2], [2], [0], given) == expected
    with pytest.raises(ValueError, match=r'"\[10\]" \(dim 0 must be between 6 and 10\)'):
        F._unpool_output_size(x, [2], [2], [0], [10])
    with pytest.raises(ValueError, match="containing 1 or 3 elements, but it has a length of '2'"):
        F._unpool_output_size(x, [2], [2], [0], [1, 9])


def test_arguments():
    assert [F._is_integer(x) for x in (2, torch.tensor(2), 2.0, torch.tensor(2.0))] == [
        True, True, False, False]
    assert (F._list_or_empty(None), F._list_or_empty([1])) == ([], [1])
    assert [F._expand_single_value(v) for v in (None, 1, [1])] == [[], [1], [1]]
    with pytest.warns(UserWarning, match="Implicit dimension choice"):
        assert [F._get_softmax_dim("softmax", n, 3) for n in range(5)] == [0, 0, 1, 0, 1]
    assert F.GRID_SAMPLE_INTERPOLATION_MODES["bicubic"] == 2
    assert F.BroadcastingList2[int] is None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        F.nothing


def test_rows_are_scaled_outside_the_graph():
    weight = torch.nn.Parameter(torch.full((3, 2), 3.0))
    F._no_grad_embedding_renorm_(weight, torch.tensor([1, 1]), 1.0, 2.0)
    assert weight[1].norm().item() == pytest.approx(1.0)
    assert weight[0].tolist() == [3.0, 3.0]
