import copy
import io
import os
import pickle
import struct
import zipfile
from collections import OrderedDict, namedtuple
from pathlib import Path

import numpy as np
import pytest

import flambeau
from flambeau import serialization
from flambeau._serialization import locations

FOLDER = Path(__file__).with_name("data") / "checkpoints"
PORTABLE = ["dtypes", "views", "objects", "objects_protocol5", "training", "legacy"]


def load(name, **options):
    return flambeau.load(FOLDER / f"{name}.pt", **options)


def saved(obj, **options):
    file = io.BytesIO()
    flambeau.save(obj, file, **options)
    file.seek(0)
    return file


# Files from PyTorch -------------------------------------------------------------------------------


@pytest.mark.parametrize("weights_only", [True, False])
def test_every_dtype_of_a_pytorch_file(weights_only):
    for name, tensor in load("dtypes", weights_only=weights_only).items():
        assert tensor.dtype is getattr(flambeau, name)
        assert tensor.double().tolist() == [0.0, 1.0, 0.0, 1.0] if name[0] != "c" else True


@pytest.mark.parametrize("mmap", [False, True])
def test_views_keep_strides_offsets_and_shared_memory(mmap):
    views = load("views", mmap=mmap)
    base = views["base"]
    assert base.tolist() == list(range(24))
    assert views["transposed"].stride() == (1, 6)
    assert views["transposed"].tolist() == np.arange(24.0).reshape(4, 6).T.tolist()
    assert views["tail"].storage_offset() == 20
    assert views["expanded"].stride() == (0, 0)
    assert views["empty"].shape == (0, 3)
    assert views["scalar"].shape == ()
    assert views["conj"].tolist() == [1 - 2j, 3 + 4j]
    assert views["neg"].tolist() == [-2.0, 4.0]
    base[2] = -7.0
    assert views["column"][0] == -7.0
    assert load("views")["base"][2] == 2.0  # the file has not changed


@pytest.mark.parametrize("again", [False, True])
def test_quantised_tensors(again):
    """From PyTorch's file, and from a file of ours with the same."""
    found = load("quantized")
    if again:
        found = flambeau.load(saved(found))
    assert (found["dtype"], found["scheme"]) == (flambeau.qint8, flambeau.per_tensor_affine)
    tensor, channels, zeros = found["tensor"], found["channels"], found["float_zeros"]
    assert (tensor.q_scale(), tensor.q_zero_point(), tensor.dtype) == (0.1, 3, flambeau.quint8)
    assert tensor.int_repr().tolist() == [[3, 33], [13, 43], [23, 53]]
    assert channels.q_per_channel_scales().tolist() == [0.5, 0.25]
    assert channels.int_repr().tolist() == [[1, 3, 5], [12, 16, 20]]
    assert zeros.qscheme() is flambeau.per_channel_affine_float_qparams
    assert zeros.dequantize().tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    four_bits = flambeau.quantize_per_tensor(flambeau.ones(2), 1.0, 0, flambeau.quint4x2)
    with pytest.raises(NotImplementedError, match="quint4x2"):
        saved(four_bits)


@pytest.mark.parametrize("name", ["objects", "objects_protocol5"])
@pytest.mark.parametrize("weights_only", [True, False])
def test_containers_and_objects_of_a_pytorch_file(name, weights_only):
    objects = load(name, weights_only=weights_only)
    assert objects["numbers"] == [1, -5, 300, 70000, 2**40, -(2**70), 1.5, float("inf"), True,
                                  False, None]
    assert objects["tuples"] == ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4))
    assert objects["text"] == "häß\n"
    assert objects["bytes"] == b"\x00\xff"
    assert objects["bytearray"] == bytearray(b"ab")
    assert objects["set"] == {1, 2}
    assert objects["complex"] == 1 - 2j
    assert objects["ordered"] == OrderedDict(a=1, b=OrderedDict())
    assert type(objects["size"]) is flambeau.Size
    assert objects["dtype"] is flambeau.bfloat16
    assert objects["device"] == flambeau.device("cpu")
    assert objects["layout"] is flambeau.strided
    assert type(objects["parameter"]) is flambeau.nn.Parameter
    assert objects["parameter"].requires_grad
    assert not objects["frozen"].requires_grad
    assert objects["requires_grad"].requires_grad
    assert objects["attribute"].note == "kept"
    assert objects["parameter_attribute"].tag == 3
    assert objects["meta"].is_meta
    assert objects["meta"].shape == (2, 3)


def test_training_state_of_pytorch_goes_on_here():
    state = load("training")
    model = flambeau.nn.Sequential(flambeau.nn.Linear(3, 4), flambeau.nn.BatchNorm1d(4),
                                   flambeau.nn.Linear(4, 2))
    model.load_state_dict(state["model"])
    optimizer = flambeau.optim.Adam(model.parameters(), lr=0.01)
    optimizer.load_state_dict(state["optimizer"])
    weight = model[0].weight.detach().clone()
    model(flambeau.arange(15.0).view(5, 3)).square().mean().backward()
    optimizer.step()
    assert optimizer.state[model[0].weight]["step"] == 4
    assert not flambeau.equal(weight, model[0].weight)


def test_module_of_pytorch_loads_when_the_file_is_trusted():
    with pytest.raises(pickle.UnpicklingError, match="add_safe_globals"):
        load("module")
    module = load("module", weights_only=False)
    assert type(module) is flambeau.nn.Linear
    assert module(flambeau.ones(1, 2)).shape == (1, 1)


def test_numpy_objects_need_trust():
    with pytest.raises(pickle.UnpicklingError, match=r"numpy\._core\.multiarray\._reconstruct"):
        load("numpy")
    trusted = load("numpy", weights_only=False)
    assert trusted["array"].tolist() == [0.0, 1.0, 2.0]
    assert trusted["scalar"] == np.float32(1.5)


def test_legacy_file_of_pytorch():
    old = load("legacy")
    assert old["weight"].tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert old["weight"].stride() == (1, 3)
    assert old["bf16"].dtype is flambeau.bfloat16
    assert old["names"] == ["a"]


def test_sparse_tensors_of_a_pytorch_file():
    sparse = load("sparse")
    assert sparse["coo"].layout is flambeau.sparse_coo
    assert sparse["csr"].layout is flambeau.sparse_csr
    for again in (sparse, flambeau.load(saved(sparse))):
        assert flambeau.equal(again["coo"].to_dense(), flambeau.eye(3))
        assert flambeau.equal(again["csr"].to_dense(), flambeau.eye(3))


# Files from here ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PORTABLE)
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_saving_and_loading_gives_the_same(name, protocol):
    before = load(name)
    assert repr(flambeau.load(saved(before, pickle_protocol=protocol))) == repr(before)


@pytest.mark.parametrize("name", ["views", "objects", "training", "legacy"])
def test_legacy_format_both_ways(name):
    before = load(name)
    file = saved(before, _use_new_zipfile_serialization=False)
    assert repr(flambeau.load(file)) == repr(before)


def test_layout_of_the_archive():
    file = saved({"a": flambeau.arange(3.0), "b": flambeau.ones(2, dtype=flambeau.int8)})
    with zipfile.ZipFile(file) as archive:
        assert archive.namelist() == [
            "archive/data.pkl", "archive/.format_version", "archive/.storage_alignment",
            "archive/byteorder", "archive/data/0", "archive/data/1", "archive/version",
            "archive/.data/serialization_id"]
        assert archive.read("archive/version") == b"3\n"
        assert archive.read("archive/data/0") == struct.pack("<3f", 0, 1, 2)
        assert archive.testzip() is None
        for info in archive.infolist():
            name_length, extra_length = struct.unpack_from(
                "<HH", file.getvalue(), info.header_offset + 26)
            assert (info.header_offset + 30 + name_length + extra_length) % 64 == 0


def test_pickle_uses_only_names_of_pytorch(tmp_path):
    objects = load("objects")
    path = tmp_path / "model.pt"
    flambeau.save(objects, path)
    with zipfile.ZipFile(path) as archive:
        assert "model/data.pkl" in archive.namelist()
        assert b"flambeau" not in archive.read("model/data.pkl")
    assert serialization.get_unsafe_globals_in_checkpoint(path) == []


def test_shared_memory_is_written_once_and_shared_again():
    base = flambeau.arange(1000.0)
    file = saved([base, base[10:], base.view(10, 100).t()])
    assert len(file.getvalue()) < 8000
    first, tail, transposed = flambeau.load(file)
    first[10] = -1.0
    assert tail[0] == -1.0
    assert transposed[10, 0] == -1.0


def test_one_memory_as_two_dtypes_is_refused():
    x = flambeau.ones(4)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        saved([x, x.view(flambeau.int32)])


def test_storages_can_be_saved():
    x = flambeau.arange(3.0)
    loaded = flambeau.load(saved({"typed": x.storage(), "tensor": x}))
    assert loaded["typed"].tolist() == [0.0, 1.0, 2.0]
    assert loaded["typed"].untyped() is loaded["tensor"].untyped_storage()


def test_module_and_other_pickle_module():
    import cloudpickle

    module = flambeau.nn.Linear(2, 3)
    again = flambeau.load(saved(module), weights_only=False)
    assert flambeau.equal(again.weight, module.weight)
    file = saved({"f": lambda x: x + 1, "x": flambeau.ones(2)}, pickle_module=cloudpickle)
    loaded = flambeau.load(file, pickle_module=pickle)
    assert loaded["f"](1) == 2
    assert loaded["x"].tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        flambeau.load(file, pickle_module=pickle, weights_only=True)


class Tagged(flambeau.Tensor):
    pass


def test_tensor_subclass():
    tensor = flambeau.ones(2).as_subclass(Tagged)
    tensor.tag = "x"
    file = saved(tensor)
    with serialization.safe_globals([Tagged]):
        again = flambeau.load(file)
    assert type(again) is Tagged
    assert again.tag == "x"
    assert again.tolist() == [1.0, 1.0]


# Paths and file objects ---------------------------------------------------------------------------


def test_failed_save_leaves_the_old_file_alone(tmp_path):
    path = tmp_path / "checkpoint.pt"
    flambeau.save(flambeau.ones(2), path)
    before = path.read_bytes()
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        flambeau.save([flambeau.zeros(3), lambda: None], str(path))
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["checkpoint.pt"]


def test_saving_follows_links_and_keeps_permissions(tmp_path):
    target, link = tmp_path / "target.pt", tmp_path / "link.pt"
    target.write_bytes(b"")
    target.chmod(0o640)
    link.symlink_to(target)
    flambeau.save(1, link)
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert flambeau.load(target) == 1


def test_bad_files_to_save_to():
    with pytest.raises(RuntimeError, match="Parent directory /nonexistent does not exist"):
        flambeau.save(1, "/nonexistent/a.pt")
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like"):
        flambeau.save(1, 3)


def test_bad_files_to_load_from(tmp_path):
    with pytest.raises(FileNotFoundError):
        flambeau.load(tmp_path / "missing.pt")
    with pytest.raises(AttributeError, match="file that is seekable"):
        flambeau.load(3)
    with pytest.raises(EOFError):
        flambeau.load(io.BytesIO())
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap"):
        flambeau.load(saved(1), mmap=True)


# Damage and malice --------------------------------------------------------------------------------


def test_damaged_files_raise_and_say_so():
    data = saved({"x": flambeau.arange(200.0)}).getvalue()
    for cut in (10, 200, 700, len(data) - 30):
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            flambeau.load(io.BytesIO(data[:cut]))
    place = data.index(struct.pack("<3f", 5, 6, 7))
    changed = data[:place] + b"\xff" + data[place + 1:]
    with pytest.raises(RuntimeError, match="checksum"):
        flambeau.load(io.BytesIO(changed))
    with pytest.raises(pickle.UnpicklingError, match="Unsupported operand 120"):
        flambeau.load(io.BytesIO(b"x" * 1000))


def archive_of(pickled, storages=()):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        for key, data in enumerate(storages):
            archive.writestr(f"archive/data/{key}", data)
    file.seek(0)
    return file


class _Calls:
    def __init__(self, function, *args):
        self.reduced = function, args

    def __reduce__(self):
        return self.reduced


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


def tensor_pickle(count, offset, size, stride):
    """The pickle of a float tensor with any layout that one asks for."""
    def number(value):
        return b"J" + struct.pack("<i", value)

    def numbers(values):
        return b"(" + b"".join(map(number, values)) + b"t"

    return (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\n"
            b"FloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu" + number(count) + b"tQ"
            + number(offset) + numbers(size) + numbers(stride)
            + b"\x89ccollections\nOrderedDict\n)RtR.")


def test_tensors_stay_within_their_memory():
    data = struct.pack("<4f", 1, 2, 3, 4)
    assert flambeau.load(archive_of(tensor_pickle(4, 1, [3], [1]), [data])).tolist() == [2, 3, 4]
    for offset, size, stride in [(2, [3], [1]), (0, [5], [1]), (-1, [2], [1]), (3, [2], [-1]),
                                 (0, [2, 2], [1]), (0, [2**31 - 1] * 3, [1] * 3),
                                 (0, [-2], [1]), (2**31 - 1, [1], [1])]:
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            flambeau.load(archive_of(tensor_pickle(4, offset, size, stride), [data]))
    with pytest.raises(RuntimeError, match="bytes"):
        flambeau.load(archive_of(tensor_pickle(5, 0, [5], [1]), [data]))
    with pytest.raises(RuntimeError, match="data/0"):
        flambeau.load(archive_of(tensor_pickle(4, 0, [4], [1])))


Point = namedtuple("Point", "x y")


class WithState:
    def __init__(self):
        self.value = flambeau.ones(1)


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


# map_location -------------------------------------------------------------------------------------


def test_map_location():
    x = flambeau.arange(3.0)
    seen = []

    def mapping(storage, location):
        seen.append((len(storage), location))
        return storage

    for choice in (None, "cpu", flambeau.device("cpu"), {"cpu": "cpu"}, {}, mapping,
                   lambda storage, location: None):
        assert flambeau.load(saved(x), map_location=choice).tolist() == [0.0, 1.0, 2.0]
    assert seen == [(12, "cpu")]
    for choice in ("meta", flambeau.device("meta"), {"cpu": "meta"}):
        loaded = flambeau.load(saved(x), map_location=choice)
        assert loaded.is_meta
        assert loaded.shape == (3,)
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
        flambeau.load(saved(x), map_location="cuda")


def test_registered_locations(monkeypatch):
    monkeypatch.setattr(locations, "_packages", list(locations._packages))
    serialization.register_package(
        1, lambda storage: "shelf" if len(storage) == 12 else None,
        lambda storage, location: storage if location == "shelf" else None)
    file = saved([flambeau.arange(3.0), flambeau.arange(2.0)])
    with zipfile.ZipFile(file) as archive:
        assert b"shelf" in archive.read("archive/data.pkl")
    file.seek(0)
    assert flambeau.load(file)[0].tolist() == [0.0, 1.0, 2.0]


def test_single_records_of_a_checkpoint(tmp_path):
    path = tmp_path / "x.pt"
    flambeau.save({"a": flambeau.arange(3.0)}, path)
    reader = flambeau.PyTorchFileReader(path)
    assert reader.has_record("data/0") and not reader.has_record("data/1")
    assert reader.get_record_size("data/0") == 12 and "data.pkl" in reader.get_all_records()
    assert flambeau.equal(reader.get_storage_from_record("data/0", 3, flambeau.float32),
                       flambeau.arange(3.0))
    with pytest.raises(RuntimeError, match="file not found"):
        reader.get_record("nothing")


# ---- files that are made to do harm, and errors of users -----------------------------------------

def test_an_error_of_map_location_reaches_the_user():
    def fail(storage, place):
        raise KeyError("mine")
    for weights_only in (True, False):
        file = io.BytesIO()
        flambeau.save({"a": flambeau.ones(2)}, file)
        file.seek(0)
        with pytest.raises(KeyError, match="mine"):
            flambeau.load(file, map_location=fail, weights_only=weights_only)


def _archive(pickled, compression):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr("x/data.pkl", pickled)
        archive.writestr("x/version", "3\n")
    file.seek(0)
    return file


@pytest.mark.parametrize("code", [b"]", b"}", b"\x8f", b")\x94"])
def test_a_pickle_of_nothing_but_containers_is_refused(code, monkeypatch):
    from flambeau._serialization import weights_unpickler as _weights_unpickler
    monkeypatch.setattr(_weights_unpickler, "MOST_MEMORY", 1 << 22)
    file = _archive(b"\x80\x04(" + code * 200_000 + b"t.", zipfile.ZIP_STORED)
    with pytest.raises(pickle.UnpicklingError, match="made to fill the memory"):
        flambeau.load(file)


def test_a_record_that_inflates_is_refused():
    file = _archive(b"\x80\x04(" + b"N" * (260 << 20) + b"t.", zipfile.ZIP_DEFLATED)
    with pytest.raises(RuntimeError, match="bytes inflate to"):
        flambeau.load(file)


# ---- storages that entries share -----------------------------------------------------------------

def shared_entries():
    x = flambeau.arange(6.0)
    tied = flambeau.nn.Sequential(flambeau.nn.Linear(2, 2), flambeau.nn.Linear(2, 2))
    tied[1].weight = tied[0].weight
    return {"last": x[4:], "all": x, "columns": x.view(2, 3).t(), "tied": tied.state_dict()}


def entries(state):
    return [state["last"], state["all"], state["columns"], *state["tied"].values()]


def geometry(tensors):
    """Which tensors share a storage; its size, and where each is in it."""
    seen = {}
    return [(seen.setdefault(t.untyped_storage().data_ptr(), len(seen)),
             t.untyped_storage().nbytes(), t.storage_offset(), t.stride()) for t in tensors]


OWN = [(24, 4, (1,)), (24, 0, (1,)), (24, 0, (1, 3)), (16, 0, (2, 1)), (8, 0, (1,)),
       (16, 0, (2, 1)), (8, 0, (1,))]


def test_files_and_deep_copies_keep_what_shares_a_storage():
    file = io.BytesIO()
    flambeau.save(shared_entries(), file)
    file.seek(0)
    for state in (flambeau.load(file), copy.deepcopy(shared_entries())):
        expected = [(i, *own) for i, own in zip((0, 0, 0, 1, 2, 1, 3), OWN)]
        assert geometry(entries(state)) == expected
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        sizes = [(i.filename.partition("/")[2], i.file_size) for i in archive.infolist()]
    assert [s for s in sizes if s[0][:5] == "data/"] == [
        ("data/0", 24), ("data/1", 16), ("data/2", 8), ("data/3", 8)]


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


def test_pickled_storages():
    typed = flambeau.arange(3, dtype=flambeau.int16).storage()
    again = pickle.loads(pickle.dumps(typed))
    assert type(again) is flambeau.TypedStorage and again.dtype is flambeau.int16
    assert again.tolist() == [0, 1, 2]
    bare = pickle.loads(pickle.dumps(typed.untyped()))
    assert type(bare) is flambeau.UntypedStorage and bare.tolist() == [0, 0, 1, 0, 2, 0]


def test_deep_copies_of_storages_and_tensors_on_them():
    x = flambeau.arange(4.0)
    y, storage, part = copy.deepcopy([x, x.untyped_storage(), x[2:]])
    assert y.untyped_storage() is storage and part.untyped_storage() is storage
    x.zero_()
    assert part.tolist() == [2, 3]


def test_the_storage_of_a_part_of_an_array_is_that_part():
    array = np.arange(100, dtype=np.float32)
    x = flambeau.from_numpy(array[90:])
    assert x.untyped_storage().nbytes() == 40 and x.storage_offset() == 0
    file = io.BytesIO()
    flambeau.save(x, file)
    assert len(pickle.dumps(x)) < 1000
    array[90] = -1
    assert x[0] == -1
