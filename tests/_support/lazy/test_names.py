"""Names that are imported when they are first asked for."""

import collections.abc
import pickle

import pytest

import flambeau as torch
from flambeau._support.lazy import names as _names


@pytest.mark.parametrize("name", sorted(_names.PLACES))
def test_every_name_is_there(name):
    assert getattr(torch, name) is not None
    assert name in dir(torch)


def test_storages():
    with pytest.raises(RuntimeError, match="Cannot directly construct StorageBase"):
        torch.StorageBase()
    assert isinstance(torch.ones(1).untyped_storage(), torch.StorageBase)
    assert torch.Storage is torch.FloatStorage
    assert torch.storage._get_dtype_from_pickle_storage_type("LongStorage") is torch.int64
    with pytest.raises(KeyError, match='"FooStorage" is not recognized'):
        torch.storage._get_dtype_from_pickle_storage_type("FooStorage")
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        torch.storage._warn_typed_storage_removal()


def test_pickled_storages():
    import io
    file = io.BytesIO()
    torch.save(torch.ones(2), file)
    assert torch.storage._load_from_bytes(file.getvalue()).tolist() == [1.0, 1.0]


def test_stacks_of_modes():
    from flambeau import overrides
    from flambeau.utils import _python_dispatch as dispatch
    for place, base, current in (
            (overrides, overrides.BaseTorchFunctionMode, overrides._get_current_function_mode),
            (dispatch, dispatch.BaseTorchDispatchMode, dispatch._get_current_dispatch_mode)):
        mode = base()
        assert current() is None
        with mode:
            assert current() is mode
            with place._pop_mode_temporarily() as left:
                assert left is mode and current() is None
            assert current() is mode
        place._push_mode(mode)
        assert place._pop_mode() is mode and current() is None
        with pytest.raises((RuntimeError, AssertionError)):
            place._pop_mode()
    assert overrides._len_torch_function_stack() == dispatch._len_torch_dispatch_stack() == 0


# Where PyTorch says that its classes and functions are.
HOMES = {
    "FloatStorage": "", "get_num_threads": "", "get_default_device": "", "Generator": "_C",
    "use_deterministic_algorithms": "", "einsum": "functional", "meshgrid": "functional",
    "pca_lowrank": "_lowrank", "lobpcg": "_lobpcg", "special.erf": "_C._special",
    "linalg.det": "_C._linalg", "fft.rfft": "_C._fft", "autograd.grad": "autograd",
    "func.vmap": "func", "optim.lr_scheduler.StepLR": "optim.lr_scheduler",
    "optim.lr_scheduler.OneCycleLR": "optim.lr_scheduler", "optim.Muon": "optim",
    "nn.MultiheadAttention": "nn.modules.activation",
    "distributed.all_reduce": "distributed.distributed_c10d",
    "serialization.add_safe_globals": "serialization",
    "utils.data.IterableDataset": "utils.data.dataset",
}


@pytest.mark.parametrize("name", HOMES)
def test_classes_and_functions_say_where_they_are(name):
    found = torch
    for part in name.split("."):
        found = getattr(found, part)
    home = HOMES[name]
    assert found.__module__ == f"flambeau.{home}".rstrip(".")
    assert pickle.loads(pickle.dumps(found)) is found


def test_datasets_of_streams_are_iterables():
    assert collections.abc.Iterable in torch.utils.data.IterableDataset.__mro__


def test_devices_and_actions_have_their_numbers():
    kinds = torch.autograd.DeviceType
    assert (kinds.CPU.value, kinds.Meta.value, kinds.MTIA.value, kinds.PrivateUse1.value) == (
        0, 14, 19, 20)
    assert len(kinds.__members__) == 21 and str(kinds.XPU) == "DeviceType.XPU"
    assert torch.profiler.ProfilerAction.DEVICE_STOPPED.value == 4
