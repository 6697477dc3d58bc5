"""Memory without a type."""

import copy
import gc
import sys

import numpy as np
import pytest

import flambeau
from flambeau.storage import UntypedStorage, storage_of


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


def test_memory_is_shared_by_a_descriptor():
    import os
    storage = flambeau.ones(3).untyped_storage()
    descriptor, size = storage._share_fd_cpu_()
    try:
        assert size == 12 and os.pread(descriptor, 12, 0) == flambeau.ones(3).numpy().tobytes()
    finally:
        os.close(descriptor)


def test_only_another_size_makes_memory_grow():
    t = flambeau.randn(1)
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 4"):
        t.set_(t.untyped_storage(), 100, (1,))
    t.set_(t.untyped_storage(), 100, (2, 3))
    assert t.untyped_storage().nbytes() == 424


def test_no_elements_are_a_line():
    assert repr(UntypedStorage()) == " \n[torch.storage.UntypedStorage(device=cpu) of size 0]"
