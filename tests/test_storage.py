import copy
import gc
import sys

import numpy as np
import pytest

import flambeau
from flambeau.storage import storage_of


def test_views_share_one_storage():
    x = flambeau.arange(6.0)
    storage = x.untyped_storage()
    assert storage is x[2:].untyped_storage() is x.view(2, 3).t().untyped_storage()
    assert x.clone().untyped_storage() is not storage
    assert storage.nbytes() == storage.size() == len(storage) == 24
    assert storage.data_ptr() == x.data_ptr()
    assert storage.tolist() == list(np.arange(6, dtype=np.float32).tobytes())


def test_bytes_are_those_of_the_tensor():
    x = flambeau.arange(3.0)
    storage = x.untyped_storage()
    storage.fill_(0)
    assert x.tolist() == [0.0, 0.0, 0.0]
    storage[3] = 0x40
    assert x.tolist() == [2.0, 0.0, 0.0]
    assert storage[3] == storage[-9] == 64
    assert storage[2:4].tolist() == [0, 64]
    storage.copy_(flambeau.ones(3).untyped_storage())
    assert x.tolist() == [1.0, 1.0, 1.0]
    for index, kind, message in [(12, IndexError, "index 12 out of range for storage of size 12"),
                                 ("a", TypeError, "can't index a torch.UntypedStorage with str"),
                                 (slice(0, 6, 2), RuntimeError, "slice with a step of 2")]:
        with pytest.raises(kind, match=message):
            storage[index]
    with pytest.raises(RuntimeError, match="self was 12 bytes but src was 4 bytes"):
        storage.copy_(flambeau.ones(1).untyped_storage())


def test_dense_memory_in_any_order():
    array = np.asfortranarray(np.arange(6.0, dtype=np.float32).reshape(2, 3))
    storage = storage_of(flambeau.from_numpy(array))
    assert flambeau.FloatStorage(wrap_storage=storage).tolist() == [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]


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


def test_legacy_constructors():
    storage = flambeau.FloatStorage([1, 2, 3])
    assert storage.tolist() == [1.0, 2.0, 3.0]
    assert isinstance(storage, flambeau.FloatStorage)
    assert not isinstance(storage, flambeau.DoubleStorage)
    assert len(flambeau.IntStorage(3)) == 3
    assert flambeau.UntypedStorage([1, 2]).tolist() == [1, 2]
    assert flambeau.FloatStorage.from_buffer(bytes(8), "big").tolist() == [0.0, 0.0]
    assert flambeau.BFloat16Storage([1.5]).tolist() == [1.5]
    assert flambeau.is_storage(storage)
    assert not flambeau.is_storage(flambeau.ones(1))


def test_text():
    assert repr(flambeau.FloatStorage([1, 2])) == (
        " 1.0\n 2.0\n[torch.storage.TypedStorage(dtype=torch.float32, device=cpu) of size 2]")
    assert repr(flambeau.UntypedStorage([7])) == (
        " 7\n[torch.storage.UntypedStorage(device=cpu) of size 1]")
    assert repr(flambeau.UntypedStorage(3, device="meta")) == (
        "...\n[torch.storage.UntypedStorage(device=meta) of size 3]")


def test_resizing_moves_the_tensor_along():
    x = flambeau.arange(4.0)
    storage = x.untyped_storage()
    storage.resize_(32)
    assert x.untyped_storage() is storage
    assert len(storage) == 32
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]
    storage.fill_(0)
    assert x.tolist() == [0.0, 0.0, 0.0, 0.0]
    x = flambeau.arange(4.0)
    view = x[1:]
    x.untyped_storage().resize_(64)
    x[1] = 7
    assert view.tolist() == [7.0, 2.0, 3.0]
    x = flambeau.arange(4.0)
    array = x.numpy()
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        x.untyped_storage().resize_(8)
    x[0] = 5
    assert array[0] == 5


def test_copies():
    storage = flambeau.FloatStorage([1, 2])
    for again in (storage.clone(), copy.copy(storage), copy.deepcopy(storage)):
        again[0] = 9
        assert storage[0] == 1.0
    pair = copy.deepcopy([storage, storage])
    pair[0][0] = 5
    assert pair[1][0] == 5.0


def test_from_file(tmp_path):
    path = tmp_path / "bytes"
    storage = flambeau.UntypedStorage.from_file(str(path), shared=True, nbytes=4)
    storage.fill_(7)
    del storage
    gc.collect()
    assert path.read_bytes() == bytes([7] * 4)


def test_meta():
    storage = flambeau.empty(2, 3, device="meta").untyped_storage()
    assert (storage.device.type, len(storage)) == ("meta", 24)
    with pytest.raises(NotImplementedError):
        storage[0]


def test_a_storage_counts_its_memory():
    storages = [flambeau.zeros(n).untyped_storage() for n in (0, 10)]
    assert sys.getsizeof(storages[1]) - sys.getsizeof(storages[0]) == 40
    assert sys.getsizeof(flambeau.zeros(10).storage()) > 40


DTYPES = (flambeau.float32, flambeau.float64, flambeau.int64, flambeau.bool, flambeau.bfloat16)


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


def test_memory_is_shared_by_a_descriptor():
    import os
    storage = flambeau.ones(3).untyped_storage()
    descriptor, size = storage._share_fd_cpu_()
    try:
        assert size == 12 and os.pread(descriptor, 12, 0) == flambeau.ones(3).numpy().tobytes()
    finally:
        os.close(descriptor)


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


def test_names_without_warnings():
    storage = flambeau.FloatStorage([1, 2])
    assert (storage._size(), storage._nbytes(), storage._getitem(0)) == (2, 8, 1)
    storage._setitem(slice(0, 2), 3)
    assert storage._resize_(3)._size() == 3 and storage[1] == 3
    assert flambeau.FloatStorage._dtype is flambeau.float32


def test_only_another_size_makes_memory_grow():
    t = flambeau.randn(1)
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 4"):
        t.set_(t.untyped_storage(), 100, (1,))
    t.set_(t.untyped_storage(), 100, (2, 3))
    assert t.untyped_storage().nbytes() == 424
