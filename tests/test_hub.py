"""torch.hub on local folders."""
from __future__ import annotations

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
    monkeypatch.setattr(hub, "_directory", None)
    assert hub.get_dir() == str(tmp_path / "hub")
    hub.set_dir(tmp_path / "other")
    assert hub.get_dir() == str(tmp_path / "other")


def test_nothing_is_downloaded(monkeypatch, tmp_path):
    monkeypatch.setattr(hub, "_directory", str(tmp_path))
    for call in (lambda: hub.load("owner/name", "model"),
                 lambda: hub.download_url_to_file("https://x/y", "z"),
                 lambda: hub.load_state_dict_from_url("https://x/model.pt")):
        with pytest.raises(NotImplementedError, match="downloads nothing"):
            call()


def test_files_that_are_there(monkeypatch, tmp_path):
    monkeypatch.setattr(hub, "_directory", str(tmp_path))
    (tmp_path / "checkpoints").mkdir()
    flambeau.save({"w": flambeau.ones(2)}, tmp_path / "checkpoints" / "model.pt")
    assert hub.load_state_dict_from_url("https://x/model.pt")["w"].tolist() == [1.0, 1.0]
