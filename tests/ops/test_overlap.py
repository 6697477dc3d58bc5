"""Writes to memory that is read at the same time: what PyTorch refuses, and what it does not."""
import pytest

import flambeau

PLACES = flambeau.arange(8)
IN_PLACE = {
    "add_": lambda x, y: x.add_(y), "mul_": lambda x, y: x.mul_(y), "lt_": lambda x, y: x.lt_(y),
    "copy_": lambda x, y: x.copy_(y), "lerp_": lambda x, y: x.lerp_(y, 0.5),
    "clamp_min_": lambda x, y: x.clamp_min_(y), "addcmul_": lambda x, y: x.addcmul_(y, y),
    "pow_": lambda x, y: x.pow_(y), "setitem": lambda x, y: x.__setitem__(slice(None), y),
    "add(out=)": lambda x, y: flambeau.add(y, 1, out=x),
    "sin(out=)": lambda x, y: flambeau.sin(y, out=x),
}
BY_INDEX = {
    "index_add_": lambda x, y: x.index_add_(0, PLACES, y),
    "index_copy_": lambda x, y: x.index_copy_(0, PLACES, y),
    "scatter_": lambda x, y: x.scatter_(0, PLACES, y), "put_": lambda x, y: x.put_(PLACES, y),
    "index_put_": lambda x, y: x.index_put_((PLACES,), y),
    "gather(out=)": lambda x, y: flambeau.gather(y, 0, PLACES, out=x),
    "take(out=)": lambda x, y: flambeau.take(y, PLACES, out=x),
    "cat(out=)": lambda x, y: flambeau.cat([y[:4], y[4:]], out=x),
}
ALLOWED = {
    "sum(out=)": lambda x, y: flambeau.sum(y.view(1, 8), 0, out=x),
    "mv(out=)": lambda x, y: flambeau.mv(flambeau.eye(8), y, out=x),
    "masked_fill_": lambda x, y: x.masked_fill_(PLACES > 3, y[0]),
}


def memory():
    return flambeau.arange(1.0, 10.0) / 20


@pytest.mark.parametrize("name", {**IN_PLACE, **BY_INDEX})
@pytest.mark.parametrize("tracked", [False, True])
def test_partial_overlap_is_refused(name, tracked):
    base = memory().requires_grad_() * 1 if tracked and "out" not in name else memory()
    with pytest.raises(RuntimeError, match="unsupported operation: some elements of the input t"):
        {**IN_PLACE, **BY_INDEX}[name](base[1:], base[:-1])


@pytest.mark.parametrize("name", {**IN_PLACE, **BY_INDEX})
def test_the_very_elements_may_be_read_only_in_order(name):
    base = memory()
    if name in IN_PLACE:
        IN_PLACE[name](base[1:], base[1:])
    else:
        with pytest.raises(RuntimeError, match="unsupported operation: some elements of the inpu"):
            BY_INDEX[name](base[1:], base[1:])


@pytest.mark.parametrize("name", ALLOWED)
def test_other_overlap_is_allowed(name):
    base = memory()
    ALLOWED[name](base[1:], base[:-1])


def test_what_counts_as_overlap():
    square = flambeau.ones(3, 3)
    for part in (square.t(), square[0]):
        with pytest.raises(RuntimeError, match="some elements of the input tensor"):
            square.add_(part)
    square[:, 1:].add_(square[:, :-1])                  # not dense: PyTorch does not look closer
    square.mul_(square.view(1, 3, 3)[0])
    square.add_(flambeau.ones(3).expand(3, 3))
    for write in (lambda t: t.add_(1), lambda t: flambeau.sin(flambeau.ones(3, 3), out=t)):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            write(flambeau.ones(3).expand(3, 3))


@pytest.mark.parametrize("part", [slice(4, 12), slice(0, 16, 2)])
def test_out_writes_into_views(part):
    for function in (lambda x, out: flambeau.sin(x, out=out),
                     lambda x, out: flambeau.cumsum(x, 0, out=out),
                     lambda x, out: flambeau.where(x > 0, x, x, out=out),
                     lambda x, out: flambeau.cat([x[:3], x[3:]], out=out)):
        base, x = flambeau.zeros(16), flambeau.ones(8) / 2
        assert function(x, base[part])._base is base
        expected = flambeau.zeros(16)
        expected[part] = function(x, flambeau.empty(0))
        assert base.equal(expected)


def test_indexing_refuses_its_own_memory():
    x, places = flambeau.tensor([1.0, -1.0, 3.0]), flambeau.tensor([0, 1, 0])
    for written, index, values in ((x, places, x), (x, places, x[0]), (x, [0, 1], x[1:]),
                                   (x, x > 0, x), (places, places, places),
                                   (places, places[:2], places[1:])):
        with pytest.raises(RuntimeError, match="some elements of the input tensor"):
            written[index] = values
    x[places] = x.flip(0)                               # memory of its own
    assert x.tolist() == [1.0, -1.0, 3.0]


def test_a_value_to_fill_with_is_a_number():
    x = flambeau.tensor([1.0, -1.0, 3.0])
    assert x.masked_fill_(x > 0, x[1]).tolist() == [-1.0, -1.0, -1.0]
    assert x.index_fill_(0, flambeau.tensor([1]), x[0]).tolist() == [-1.0, -1.0, -1.0]
    x[x < 0] = x[0]
    assert x.tolist() == [-1.0, -1.0, -1.0]


def _itself_empty():
    x = flambeau.zeros(0)
    flambeau.cat([x, flambeau.ones(4, 6)], out=x)


def _grown_into_the_index():
    index = flambeau.tensor([2, 1, 0])
    flambeau.gather(index.clone(), 0, index[1:], out=index[:1])


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("call", [_itself_empty, _grown_into_the_index])
def test_memory_that_out_gets_by_resizing_is_looked_at(call):
    with pytest.raises(RuntimeError, match="some elements of the input tensor"):
        call()


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_what_looks_at_out_before_it_is_resized_alone():
    index = flambeau.tensor([2, 1, 0])
    assert flambeau.index_select(flambeau.arange(5), 0, index[1:], out=index[:1]).tolist() == [1, 0]


@pytest.mark.parametrize("name", ["sin", "exp", "acos", "neg"])
@pytest.mark.parametrize("dtype", [flambeau.float32, flambeau.int64])
def test_overlap_is_refused_before_another_shape_or_type_is_looked_at(name, dtype):
    base = flambeau.ones(20, dtype=dtype)
    for out in (base[1:5], base[1:9], base[1:9].view(2, 4)):
        before = out.shape
        with pytest.raises(RuntimeError, match="unsupported operation: some elements of the input"):
            getattr(flambeau, name)(base[:8], out=out)
        with pytest.raises(RuntimeError, match="unsupported operation: some elements of the input"):
            flambeau.mul(base[:8], flambeau.ones(2, 8), out=out)
        assert out.shape == before and (base == 1).all()
