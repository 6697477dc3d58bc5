"""What storages of bytes and of numbers share."""
import pytest

import flambeau
from flambeau.storage.base import StorageBase


def test_none_is_made_of_the_base():
    with pytest.raises(RuntimeError, match="Cannot directly construct StorageBase"):
        StorageBase()
    assert isinstance(flambeau.UntypedStorage(2), StorageBase)


@pytest.mark.parametrize("storage", [flambeau.UntypedStorage(2), flambeau.FloatStorage(2)],
                         ids=["untyped", "typed"])
def test_all_lie_in_main_memory(storage):
    assert storage.get_device() == -1 and storage.resizable()
    assert not (storage.is_cuda or storage.is_sparse or storage.is_hpu or storage.is_pinned())
    with pytest.raises((RuntimeError, AssertionError)):
        storage.cuda()
