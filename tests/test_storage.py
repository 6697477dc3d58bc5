

import flambeau


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


def test_names_without_warnings():
    storage = flambeau.FloatStorage([1, 2])
    assert (storage._size(), storage._nbytes(), storage._getitem(0)) == (2, 8, 1)
    storage._setitem(slice(0, 2), 3)
    assert storage._resize_(3)._size() == 3 and storage[1] == 3
    assert flambeau.FloatStorage._dtype is flambeau.float32
