"""Memory of one type."""

import pytest

import flambeau

DTYPES = (flambeau.float32, flambeau.float64, flambeau.int64, flambeau.bool, flambeau.bfloat16)


def test_typed_storage():
    x = flambeau.arange(4.0)
    typed = x.storage()
    assert (typed.dtype, len(typed), typed.nbytes(), typed.element_size()) == (
        flambeau.float32, 4, 16, 4)
    assert typed[-1] == 3.0
    typed[0] = 5
    typed[1:3] = 7
    assert x.tolist() == [5.0, 7.0, 7.0, 3.0] == typed.tolist() == list(typed)
    with pytest.raises(RuntimeError, match="slices are only supported in UntypedStorage"):
        typed[0:2]
    assert typed.type() == "torch.FloatStorage"
    assert typed.int().tolist() == [5, 7, 7, 3]
    assert typed.type("torch.DoubleStorage").dtype is flambeau.float64
    assert typed.untyped() is x.untyped_storage()


@pytest.mark.parametrize("own", DTYPES)
@pytest.mark.parametrize("other", DTYPES)
def test_a_storage_is_read_as_its_own_type_and_bytes_as_any(own, other):
    x = flambeau.tensor([1, 0, 1, 1]).to(own)
    assert flambeau.tensor(x.storage(), dtype=own).tolist() == x.tolist()
    assert flambeau.empty(0, dtype=own).set_(x.storage()).data_ptr() == x.data_ptr()
    read = flambeau.tensor(x.untyped_storage(), dtype=other)
    assert read.dtype is other and len(read) == x.nbytes // other.itemsize
    if other is not own:
        for use in (lambda: flambeau.tensor(x.storage(), dtype=other),
                    lambda: flambeau.empty(0, dtype=other).set_(x.storage())):
            with pytest.raises(RuntimeError, match=r"Expected a Storage of type .* or an Untyp"):
                use()


def test_typed_storages_without_memory():
    meta = flambeau.TypedStorage([1, 2, 3], dtype=flambeau.int16, device="meta")
    assert (meta.device.type, meta.size(), meta.nbytes(), meta.data_ptr()) == ("meta", 3, 6, 0)
    assert meta.clone().device.type == "meta" and meta.fill_(1).resize_(5).size() == 5
    for act in (meta.cpu, lambda: flambeau.TypedStorage(5, dtype=flambeau.int16).copy_(meta),
                lambda: meta._write_file(None, True, True, 2)):
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
            act()
    for act in (meta.tolist, lambda: meta[0]):
        with pytest.raises(NotImplementedError, match="Not available for 'meta' device type"):
            act()
    for act in (meta.share_memory_, meta._share_fd_cpu_, meta._share_filename_cpu_):
        with pytest.raises(RuntimeError, match="only available on CPU"):
            act()


@pytest.mark.parametrize("call, said", [
    (lambda: flambeau.FloatStorage(device="cpu"), "Keyword argument 'device' cannot be specified"),
    (lambda: flambeau.FloatStorage(0, 0), "Too many positional arguments"),
    (lambda: flambeau.FloatStorage("string"), "invalid data type 'str'"),
    (lambda: flambeau.FloatStorage(flambeau.ones(1)), "Argument type not recognized"),
    (lambda: flambeau.FloatStorage(wrap_storage=flambeau.FloatStorage()), "must be UntypedStorage"),
    (lambda: flambeau.TypedStorage(wrap_storage=flambeau.UntypedStorage()),
     "'dtype' must be specified"),
    (lambda: flambeau.TypedStorage(wrap_storage=flambeau.UntypedStorage(), dtype=0),
     "'dtype' must be torch.dtype"),
    (lambda: flambeau.storage._LegacyStorage(), "Only child classes of _LegacyStorage")])
def test_wrong_calls_of_typed_storages(call, said):
    with pytest.raises((RuntimeError, TypeError), match=said):
        call()
