"""Pickles of tensors and storages outside of files."""

import os
import pickle
import subprocess
import sys
from collections import OrderedDict

import pytest
from serialization_cases import OWN, entries, geometry, shared_entries

import flambeau

NAMES_IN_PYTORCH = """
    __builtin__.print __builtin__.set _codecs.encode collections.OrderedDict torch.Size
    torch.Tensor torch._C.Generator torch._tensor._rebuild_from_type_v2
    torch._utils._rebuild_meta_tensor_no_storage torch._utils._rebuild_parameter
    torch._utils._rebuild_parameter_with_state torch._utils._rebuild_qtensor
    torch._utils._rebuild_sparse_tensor torch._utils._rebuild_tensor_v2
    torch.device torch.float32
    torch.nn.modules.module._WrappedHook torch.nn.modules.rnn.LSTM torch.per_tensor_affine
    torch.serialization._get_layout torch.storage._load_from_bytes"""


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_pickled_tensors_have_all_of_their_storage_each_a_copy(protocol):
    state = pickle.loads(pickle.dumps(shared_entries(), protocol))
    assert geometry(entries(state)) == [(i, *own) for i, own in enumerate(OWN)]
    for ours, given in zip(entries(state), entries(shared_entries())):
        assert ours.shape == given.shape and ours.requires_grad == given.requires_grad
    assert flambeau.equal(state["columns"], flambeau.arange(6.0).view(2, 3).t())


def test_pickled_tensors_are_calls_of_pytorchs_functions():
    function, args = flambeau.arange(6.0)[1:3].__reduce_ex__(2)
    assert function is flambeau._utils._rebuild_tensor_v2
    assert type(args[0]) is flambeau.TypedStorage
    assert args[1:] == (1, (2,), (1,), False, OrderedDict())


def pickled():
    """Objects of all kinds that pickles hold."""
    x = flambeau.arange(6.0)
    own = x.clone()
    own.note = "mine"
    parameter = flambeau.nn.Parameter(x.clone())
    parameter.note = "mine"
    lstm = flambeau.nn.LSTM(2, 2)
    lstm.register_load_state_dict_pre_hook(print)
    return [x[1:4], x.bfloat16(), own, parameter, x.to("meta"), lstm,
            x.to_sparse(), x.view(2, 3).to_sparse_csr(), (x * 1j).conj(), flambeau.nn.Buffer(x),
            flambeau.quantize_per_tensor(x, 0.1, 0, flambeau.quint8), flambeau.Generator(),
            x.shape, x.dtype, x.device, x.layout, flambeau.per_tensor_affine,
            flambeau.Tensor, flambeau.add]


@pytest.mark.parametrize("protocol", [2, 4])
def test_objects_come_back_from_pickles(protocol):
    for value in pickled():
        again = pickle.loads(pickle.dumps(value, protocol))
        assert type(again) is type(value)
        assert repr(again).split(" at 0x")[0] == repr(value).split(" at 0x")[0]
        assert getattr(again, "note", None) == getattr(value, "note", None)


def test_pickles_name_what_pytorchs_name():
    """Where flambeau is torch. Functions are the exception: PyTorch's are attributes of a class."""
    found = subprocess.run([sys.executable, "-c", """
        import flambeau.as_torch, pickle, pickletools
        from test_pickling import pickled
        data = pickle.dumps(pickled()[:-1], 2)
        print(*{arg.replace(" ", ".") for op, arg, _ in pickletools.genops(data)
                if op.name == "GLOBAL"})""".replace("\n        ", "\n").strip()], text=True,
        capture_output=True, check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert sorted(found.stdout.split()) == NAMES_IN_PYTORCH.split()


def test_a_generator_is_pickled_as_pytorchs_is():
    generator = flambeau.Generator().manual_seed(3)
    flambeau.rand(5, generator=generator)
    kind, (device,), (seed, offset, state) = generator.__reduce__()
    assert (kind, device.type, seed, offset) == (flambeau.Generator, "cpu", 3, None)
    again = pickle.loads(pickle.dumps(generator))
    assert flambeau.equal(again.get_state(), state) and again.initial_seed() == 3


def test_pickled_storages():
    typed = flambeau.arange(3, dtype=flambeau.int16).storage()
    again = pickle.loads(pickle.dumps(typed))
    assert type(again) is flambeau.TypedStorage and again.dtype is flambeau.int16
    assert again.tolist() == [0, 1, 2]
    bare = pickle.loads(pickle.dumps(typed.untyped()))
    assert type(bare) is flambeau.UntypedStorage and bare.tolist() == [0, 0, 1, 0, 2, 0]
