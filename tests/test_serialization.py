import copy
import io
import os
import pickle
import struct
import sys
import zipfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

import flambeau

sys.path.insert(0, str(Path(__file__).with_name("_serialization")))
from serialization_cases import OWN, entries, geometry, load, saved, shared_entries

PORTABLE = ["dtypes", "views", "objects", "objects_protocol5", "training", "legacy"]


# Files from PyTorch -------------------------------------------------------------------------------


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


def test_options_that_do_not_fit_are_refused():
    with pytest.warns(UserWarning, match="only works if `weights_only=False`"):
        flambeau.load(saved(1), encoding="ascii")
    with pytest.warns(UserWarning), pytest.raises(TypeError, match="keyword argument 'other'"):
        flambeau.load(saved(1), other=1)
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        flambeau.load(saved(1, _use_new_zipfile_serialization=False), mmap=True)
    with pytest.raises(ValueError, match="f must be a file path"):
        flambeau.load(saved(1), mmap=True)


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


# map_location -------------------------------------------------------------------------------------


# ---- files that are made to do harm, and errors of users -----------------------------------------

# ---- storages that entries share -----------------------------------------------------------------

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


def test_files_have_to_be_seekable():
    for read in (flambeau.load, flambeau.serialization.get_unsafe_globals_in_checkpoint):
        with pytest.raises(AttributeError, match="has no attribute 'seek'"):
            read(object())
