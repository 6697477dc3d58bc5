"""torch.hub on folders, and on what it fetches."""
from __future__ import annotations

import hashlib
import zipfile

import pytest

import flambeau
from flambeau import hub

CONF = '''
dependencies = ["json"]
from helper import base

def add(x=1, **options):
    """Adds one."""
    return base + x

def _hidden():
    pass

VALUE = 3
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "hubconf.py").write_text(CONF)
    (tmp_path / "helper.py").write_text("base = 1")
    return str(tmp_path)


def test_list_help_load(folder):
    assert hub.list(folder) == ["add"]
    assert hub.help(folder, "add") == "Adds one."
    assert hub.load(folder, "add", source="local", x=4) == 5


def test_what_is_refused(folder, tmp_path):
    for name in ("nope", "VALUE"):
        with pytest.raises(RuntimeError, match=f"Cannot find callable {name} in hubconf"):
            hub.load(folder, name, source="local")
    with pytest.raises(ValueError, match="model should be a string"):
        hub.load(folder, 3, source="local")
    with pytest.raises(ValueError, match='Unknown source: "zzz"'):
        hub.load(folder, "add", source="zzz")
    with pytest.raises(FileNotFoundError):
        hub.load(str(tmp_path / "none"), "add", source="local")
    (tmp_path / "hubconf.py").write_text("dependencies = ['no_such_package']")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package"):
        hub.load(folder, "add", source="local")


def test_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(hub, "_hub_dir", None)
    assert hub.get_dir() == str(tmp_path / "hub")
    hub.set_dir(tmp_path / "other")
    assert hub.get_dir() == str(tmp_path / "other")


def test_files_are_downloaded_once(tmp_path, capsys):
    source, weights = tmp_path / "source.pth", tmp_path / "kept"
    flambeau.save({"w": flambeau.ones(2)}, source)
    found = hub.load_state_dict_from_url(source.as_uri(), model_dir=str(weights), progress=False)
    assert found["w"].tolist() == [1.0, 1.0]
    assert f'Downloading: "{source.as_uri()}" to {weights}' in capsys.readouterr().out
    source.unlink()
    assert hub.load_state_dict_from_url(source.as_uri(), model_dir=str(weights))
    assert capsys.readouterr().out == ""


def test_hashes_are_checked(tmp_path, capfd):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"data")
    digest = hashlib.sha256(b"data").hexdigest()
    with pytest.raises(RuntimeError, match=r'invalid hash value \(expected "ff", got "3a6eb07'):
        hub.download_url_to_file(source.as_uri(), str(target), "ff", progress=False)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]
    hub.download_url_to_file(source.as_uri(), str(target), digest[:8], progress=True)
    assert target.read_bytes() == b"data"
    assert "100" in capfd.readouterr().err
    with pytest.raises(OSError, match="No such file"):
        hub.download_url_to_file((tmp_path / "none").as_uri(), str(target) + "2")


def test_packed_files(tmp_path):
    inner, packed = tmp_path / "inner.pth", tmp_path / "packed.zip"
    flambeau.save({"w": 1}, inner)
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(inner, "inner.pth")
    with pytest.warns(FutureWarning, match="Falling back to the old format"):
        assert hub.load_state_dict_from_url(packed.as_uri(), str(tmp_path / "kept"),
                                            progress=False) == {"w": 1}


def test_files_that_are_there(monkeypatch, tmp_path):
    monkeypatch.setattr(hub, "_hub_dir", str(tmp_path))
    (tmp_path / "checkpoints").mkdir()
    flambeau.save({"w": flambeau.ones(2)}, tmp_path / "checkpoints" / "model.pt")
    assert hub.load_state_dict_from_url("https://x/model.pt")["w"].tolist() == [1.0, 1.0]
