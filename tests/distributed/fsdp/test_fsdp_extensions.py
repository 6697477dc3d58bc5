"""What `FullyShardedDataParallel` would ask of tensors that other processes share, too."""
import inspect

import pytest

from flambeau.distributed.fsdp._fsdp_extensions import FSDPExtensions

ASKED = {"pre_flatten_transform": "tensor", "post_unflatten_transform": "tensor param_extension",
         "chunk_tensor": "tensor rank world_size num_devices_per_node pg device",
         "chunk_dtensor": "tensor rank device_mesh", "pre_load_state_dict_transform": "tensor",
         "all_gather_dtensor": "tensor parent_mesh"}


def test_all_methods_have_to_be_there():
    with pytest.raises(TypeError, match="abstract"):
        FSDPExtensions()
    methods = {name: lambda self, *args: (self, *args) for name in ASKED}
    made = type("Mine", (FSDPExtensions,), methods)()
    assert made.chunk_dtensor(1, 2, 3) == (made, 1, 2, 3)
    for name in ASKED:
        left = {other: method for other, method in methods.items() if other != name}
        with pytest.raises(TypeError, match=name):
            type("Mine", (FSDPExtensions,), left)()


@pytest.mark.parametrize("name", ASKED)
def test_their_arguments(name):
    assert [*inspect.signature(getattr(FSDPExtensions, name)).parameters] == [
        "self", *ASKED[name].split()]
