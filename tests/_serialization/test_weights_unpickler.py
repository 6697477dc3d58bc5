"""Pickles are read without running code of their choosing."""

import copy
import io
import os
import pickle
import zipfile
from collections import namedtuple

import numpy as np
import pytest
from serialization_cases import archive_of, compressed_archive, saved

import flambeau
from flambeau import serialization


class _Calls:
    def __init__(self, function, *args):
        self.reduced = function, args

    def __reduce__(self):
        return self.reduced


Point = namedtuple("Point", "x y")


class WithState:
    def __init__(self):
        self.value = flambeau.ones(1)


@pytest.mark.parametrize("function, args", [
    (os.system, ("touch harmed",)), (eval, ("1 + 1",)), (exec, ("x = 1",)), (open, ("harmed", "w")),
    (getattr, ("", "join")), (__import__, ("os",)), (copy.copy, (1,)), (np.zeros, (3,)),
    (print, ("hello",)),
])
@pytest.mark.parametrize("protocol", [2, 4])
def test_code_in_a_file_does_not_run(function, args, protocol, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pickled = pickle.dumps({"x": _Calls(function, *args)}, protocol)
    for file in (archive_of(pickled), io.BytesIO(pickled)):
        with pytest.raises(pickle.UnpicklingError, match="GLOBAL"):
            flambeau.load(file)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("pickled", [
    b"\x80\x02ctorch\ndevice\nX\x03\x00\x00\x00cpu\x85R(K\x01tR.",         # calls a device
    b"\x80\x02c__builtin__\nset\n}X\x01\x00\x00\x00xK\x01sb.",             # changes a class
    b"\x80\x02ctorch\nTensor\nN}X\x03\x00\x00\x00addK\x01s\x86b.",
    b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}b.",
    b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x03\x00\x00\x00bz2\x86R.",
    b"\x80\x02ctorch\nFloatStorage\nK\x05\x85R.",                          # asks for memory
    b"\x80\x02ctorch.storage\nUntypedStorage\nK\x05\x85R.",
    b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(K\x01K\x02)NtR.",
    b"\x80\x02K\x01K\x02b.", b"\x80\x02K\x01K\x02R.", b"\x80\x02]K\x01K\x02s.",
    b"\x80\x02}K\x01a.", b"\x80\x02h\x05.", b"\x80\x02t.", b"\x80\x02.", b"\x80\x09N.",
    b"\x80\x02X\xff\xff\xff\x7fab.", b"\x80\x02K\x01Q.", b"\x80\x02\x8e" + b"\xff" * 8 + b".",
])
def test_odd_pickles_are_refused(pickled):
    with pytest.raises((pickle.UnpicklingError, RuntimeError)):
        flambeau.load(archive_of(pickled))


def test_safe_globals():
    file = saved({"point": Point(1, 2), "object": WithState()})
    with pytest.raises(pickle.UnpicklingError, match=r"Point.*add_safe_globals"):
        flambeau.load(file)
    refused = serialization.get_unsafe_globals_in_checkpoint(file)
    assert [name.rpartition(".")[2] for name in refused] == ["Point", "WithState"]
    file.seek(0)
    with serialization.safe_globals([Point, WithState]):
        assert set(serialization.get_safe_globals()) >= {Point, WithState}
        loaded = flambeau.load(file)
    assert loaded["point"] == Point(1, 2)
    assert loaded["object"].value.tolist() == [1.0]
    assert serialization.get_safe_globals() == []
    serialization.add_safe_globals([Point, (WithState, "old.Name")])
    assert len(serialization.get_safe_globals()) == 2
    serialization.clear_safe_globals()
    assert serialization.get_safe_globals() == []


@pytest.mark.parametrize("code", [b"]", b"}", b"\x8f", b")\x94"])
def test_a_pickle_of_nothing_but_containers_is_refused(code, monkeypatch):
    from flambeau._serialization import weights_unpickler as _weights_unpickler
    monkeypatch.setattr(_weights_unpickler, "MOST_MEMORY", 1 << 22)
    file = compressed_archive(b"\x80\x04(" + code * 200_000 + b"t.", zipfile.ZIP_STORED)
    with pytest.raises(pickle.UnpicklingError, match="made to fill the memory"):
        flambeau.load(file)
