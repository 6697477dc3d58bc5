"""`out=` and `resize_` keep the memory that a tensor has: what is written there is seen by all that
look at it."""
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau

OPS = {"add": lambda x, out: flambeau.add(x, x, out=out),
       "cumsum": lambda x, out: flambeau.cumsum(x + x, 0, out=out) if x.dim() else
       flambeau.mul(x, 2, out=out),
       "sum": lambda x, out: flambeau.sum(flambeau.stack([x, x]), 0, out=out),
       "cat": lambda x, out: flambeau.cat([x.reshape(-1), x.reshape(-1)], out=out),
       "stack": lambda x, out: flambeau.stack([x, x], out=out),
       "sort": lambda x, out: flambeau.sort(x, stable=True, dim=-1, out=(
           out, flambeau.empty(0, dtype=flambeau.int64)))}
shapes = st.lists(st.integers(1, 3), max_size=3).map(tuple)


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("name", OPS)
@settings(max_examples=25)      # each looks through all objects for tensors on that memory
@given(shape=shapes, before=st.integers(1, 40), offset=st.integers(0, 5))
def test_out_of_another_shape_keeps_its_memory(name, shape, before, offset):
    x = flambeau.arange(float(flambeau.Size(shape).numel())).reshape(shape)
    expected = flambeau.empty(0)
    OPS[name](x, expected)
    memory = flambeau.full((before + offset,), -1.0)
    out = memory[offset:]
    OPS[name](x, out)
    assert out.equal(expected) and out.stride() == expected.stride()
    assert out.storage_offset() == offset
    assert out.untyped_storage().data_ptr() == memory.untyped_storage().data_ptr()
    assert memory[:offset].eq(-1).all()
    if expected.numel() <= before:
        assert memory.as_strided(out.shape, out.stride(), offset).equal(expected)


@settings(max_examples=25)      # each looks through all objects for tensors on that memory
@given(shape=shapes, count=st.integers(0, 40), offset=st.integers(0, 5))
def test_resized_tensors_look_at_the_memory_row_by_row(shape, count, offset):
    memory = flambeau.arange(float(count + offset))
    view = memory[offset:]
    view.resize_(shape)
    assert view.shape == shape and view.is_contiguous()
    known = min(count, view.numel())
    assert view.reshape(-1)[:known].tolist() == [float(offset + i) for i in range(known)]
