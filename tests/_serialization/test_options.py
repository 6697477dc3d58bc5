"""Options of save and load."""

import io
import mmap
import sys
import zipfile

import pytest

import flambeau as torch
from flambeau import serialization as S
from flambeau.utils.serialization import config


def test_options_have_fixed_names():
    assert (config.load.mmap, config.load.endianness, config.save.storage_alignment) == (
        False, None, 64)
    with config.patch({"load.mmap": True, "save.storage_alignment": 128}):
        assert config.load.mmap and config.save.storage_alignment == 128
    assert not config.load.mmap
    for read_or_write in (lambda: config.load.zz, lambda: setattr(config.load, "zz", 1)):
        with pytest.raises(AttributeError, match=r"config\.load\.zz does not exist"):
            read_or_write()


def test_bytes_in_another_order():
    file = io.BytesIO()
    torch.save(torch.tensor([1, 256], dtype=torch.int16), file)
    unsaid = io.BytesIO()
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(unsaid, "w") as target:
        for name in source.namelist():
            if not name.endswith("byteorder"):
                target.writestr(name, source.read(name))

    def load(written):
        return torch.load(io.BytesIO(written.getvalue())).tolist()
    other = S.LoadEndianness.BIG if sys.byteorder == "little" else S.LoadEndianness.LITTLE
    S.set_default_load_endianness(other)
    try:
        assert S.get_default_load_endianness() is other
        assert load(unsaid) == [256, 1]
        assert load(file) == [1, 256]
    finally:
        S.set_default_load_endianness(None)
    assert load(unsaid) == [1, 256]
    with pytest.raises(TypeError, match="set_default_load_endianness"):
        S.set_default_load_endianness("big")


def test_files_mapped_shared_can_be_changed(tmp_path):
    path = tmp_path / "x.pt"
    torch.save({"a": torch.ones(2), "b": torch.zeros(2)}, path)
    assert S.get_default_mmap_options() == mmap.MAP_PRIVATE
    torch.load(path, mmap=True)["a"][0] = 5
    assert torch.load(path)["a"].tolist() == [1.0, 1.0]
    with S.set_default_mmap_options(mmap.MAP_SHARED):
        torch.load(path, mmap=True)["a"][0] = 5
    assert S.get_default_mmap_options() == mmap.MAP_PRIVATE
    assert torch.load(path)["a"].tolist() == [5.0, 1.0]
    with pytest.raises(ValueError, match="MAP_SHARED, but got 3"):
        S.set_default_mmap_options(3)


def test_mapping_can_be_the_default(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.ones(2), path)
    with config.patch("load.mmap", True):
        assert torch.load(path).tolist() == [1.0, 1.0]
        with pytest.raises(ValueError, match="f must be a file path"):
            torch.load(io.BytesIO(path.read_bytes()))


def test_files_without_checksums():
    """As PyTorch writes them after `set_crc32_options(False)`."""
    file = io.BytesIO()
    torch.save(torch.arange(3), file)
    data = bytearray(file.getvalue())
    with zipfile.ZipFile(file) as archive:
        entries, at = archive.infolist(), archive.start_dir
    for info in entries:
        data[info.header_offset + 14:info.header_offset + 18] = bytes(4)
    while data[at:at + 4] == b"PK\x01\x02":
        data[at + 16:at + 20] = bytes(4)
        at += 46 + sum(int.from_bytes(data[at + i:at + i + 2], "little") for i in (28, 30, 32))
    assert torch.load(io.BytesIO(data)).tolist() == [0, 1, 2]
    S.set_crc32_options(False)
    assert S.get_crc32_options() is False
    S.set_crc32_options(True)


def test_data_can_be_skipped(tmp_path):
    path = tmp_path / "x.pt"
    with S.skip_data():
        torch.save({"w": torch.ones(3)}, path)
    assert torch.load(path)["w"].tolist() == [0.0] * 3
    torch.save({"w": torch.ones(3)}, path)
    with S.skip_data():
        assert torch.load(path)["w"].shape == (3,)
    assert torch.load(path)["w"].tolist() == [1.0] * 3


def test_versions_and_devices():
    assert S.check_module_version_greater_or_equal(torch, (2, 0))
    assert not S.check_module_version_greater_or_equal(torch, (99, 0))
    strange = type("strange", (), {"__version__": "x"})
    with pytest.raises(RuntimeError, match="version string is malformed 'x'"):
        S.check_module_version_greater_or_equal(strange, (1,))
    with pytest.raises(RuntimeError, match="deserialize object on a CUDA device"):
        S.validate_cuda_device("cuda")
    with pytest.raises(RuntimeError, match="HPU device module is not registered"):
        S.validate_hpu_device("hpu")
