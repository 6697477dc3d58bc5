from __future__ import annotations

import pytest

import flambeau
from flambeau.distributed.pipelining import microbatch
from flambeau.distributed.pipelining.microbatch import (
    TensorChunkSpec,
    _CustomReducer,
    _Replicate,
    _split_block_mask,
    merge_chunks,
    split_args_kwargs_into_chunks,
    sum_reducer,
)
from flambeau.nn.attention.flex_attention import create_block_mask

x = flambeau.arange(10.0).reshape(5, 2)


def equal(found, wanted):
    flambeau.testing.assert_close(found, wanted, rtol=0, atol=0)


def test_tensors_are_cut_and_the_rest_is_given_whole():
    args, kwargs = split_args_kwargs_into_chunks(
        (x, 3, [x, "a"], None), {"k": (x, {"z": x}), "b": True}, 2)
    assert len(args) == len(kwargs) == 2
    for part, (chunk, named) in zip((x[:3], x[3:]), zip(args, kwargs)):
        equal(chunk[0], part)
        equal(chunk[2][0], part)
        assert chunk[1] == 3 and chunk[2][1] == "a" and chunk[3] is None and named["b"]
        equal(named["k"][1]["z"], part)


def test_other_dimensions_and_copies():
    (a, b), _ = split_args_kwargs_into_chunks(
        (x, x), {}, 2, args_chunk_spec=(TensorChunkSpec(1), _Replicate()))
    equal(a[0], x[:, :1])
    equal(b[0], x[:, 1:])
    assert a[1] is x


def test_a_short_tensor_makes_fewer_chunks():
    args, kwargs = split_args_kwargs_into_chunks((x,), {"k": flambeau.zeros(2)}, 4)
    assert len(args) == len(kwargs) == 2
    assert split_args_kwargs_into_chunks((), None, 3) == ([(), (), ()], [{}, {}, {}])


@pytest.mark.parametrize("args, spec, error, message", [
    ((x,), (TensorChunkSpec(0), TensorChunkSpec(0)), AssertionError, r"args_dict.keys\(\) = \[0\]"),
    ((x,), (None,), AssertionError, "Expected TensorChunkSpec, got <class 'NoneType'>"),
    ((5,), (TensorChunkSpec(0),), ValueError, "Unsupported chunk spec: TensorChunkSpec"),
    (([x, x],), (TensorChunkSpec(0),), ValueError, "chunk spec"),
    ((flambeau.tensor(3.0),), None, IndexError, "Dimension specified as 0"),
])
def test_bad_splits(args, spec, error, message):
    with pytest.raises(error, match=message):
        split_args_kwargs_into_chunks(args, None, 3, args_chunk_spec=spec)


def test_merging():
    chunks = [x[:2], x[2:]]
    equal(merge_chunks(chunks, None), x)
    equal(merge_chunks([x[:, :1], x[:, 1:]], TensorChunkSpec(1)), x)
    merged = merge_chunks([{"a": part, "l": flambeau.tensor(1.0), "n": 3} for part in chunks],
                          {"a": TensorChunkSpec(0), "l": sum_reducer, "n": None})
    equal(merged["a"], x)
    assert merged["l"].item() == 2 and merged["n"] == 3
    assert merge_chunks([1, 2], _CustomReducer(10, lambda a, b: a + b)) == 13
    with pytest.raises(AssertionError, match="Expected 1, got 2"):
        merge_chunks([1, 2], _Replicate())
    with pytest.raises(ValueError, match="did not match chunk spec"):
        merge_chunks([(x,), (x, x)], None)
    with pytest.raises(RuntimeError, match="zero-dimensional tensor"):
        merge_chunks([flambeau.tensor(1.0)] * 2, None)


def test_masked_microbatches(monkeypatch):
    monkeypatch.setattr(microbatch, "_debug_mask_minibatches", True)
    (a, b), _ = split_args_kwargs_into_chunks((x,), None, 2)
    assert a[0].shape == b[0].shape == x.shape
    equal(a[0] + b[0], x)
    equal(merge_chunks([a[0] * 2, b[0] * 2], None), x * 2)


def test_block_masks():
    def later(b, h, q, k):
        return q >= k + b
    mask = create_block_mask(later, 4, None, 256, 256, device="cpu")
    (first,), (second,) = split_args_kwargs_into_chunks((mask,), None, 2)[0]
    whole = mask.to_dense()
    equal(flambeau.cat([first.to_dense(), second.to_dense()]), whole)
    zero = flambeau.tensor(0)
    assert not second.mask_mod(zero, zero, flambeau.tensor(2), flambeau.tensor(1))
    one = create_block_mask(later, None, None, 256, 256, device="cpu")
    assert _split_block_mask(one, 3) == [one] * 3
    with pytest.raises(AssertionError, match="fewer batch size"):
        _split_block_mask(mask, 5)


def test_specs_print_themselves():
    assert str(TensorChunkSpec(1)) == "TensorChunkSpec(1)"
    assert [spec.split_dim for spec in TensorChunkSpec.from_tuple((0, 2))] == [0, 2]
    assert TensorChunkSpec.from_dict({"a": 1})["a"].split_dim == 1
