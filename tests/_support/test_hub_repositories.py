"""Repositories are fetched from GitHub when somebody trusts them."""

import zipfile

import pytest

from flambeau import hub


@pytest.fixture
def github(monkeypatch, tmp_path):
    """A repository as GitHub packs it, in place of what would be downloaded."""
    monkeypatch.setattr(hub, "_hub_dir", str(tmp_path))

    def download(url, path, progress):
        assert url == "https://github.com/owner/name/zipball/v1"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("owner-name-abc/hubconf.py", "def answer(): return 42")
    monkeypatch.setattr(hub, "download_url_to_file", download)
    return tmp_path


def test_repositories_are_fetched_when_they_are_trusted(github, monkeypatch, capsys):
    monkeypatch.setattr("builtins.input", lambda question: "n")
    with pytest.raises(Exception, match="Untrusted repository"):
        hub.load("owner/name:v1", "answer", skip_validation=True)
    monkeypatch.setattr("builtins.input", lambda question: "y")
    assert hub.load("owner/name:v1", "answer", skip_validation=True) == 42
    assert (github / "trusted_list").read_text() == "owner_name\n"
    monkeypatch.setattr("builtins.input", None)
    assert hub.list("owner/name:v1", skip_validation=True) == ["answer"]
    assert "Using cache found in" in capsys.readouterr().out
    with pytest.raises(ValueError, match="trust_repo is True, False or 'check'"):
        hub.load("owner/name:v1", "answer", trust_repo=3)


def test_names_of_repositories():
    assert hub._parse_repo_info("a/b:c") == ("a", "b", "c")
    with pytest.raises(ValueError, match="not enough values to unpack"):
        hub._parse_repo_info("ab")
