"""What the machine and its software are."""

import pytest

from flambeau.utils import collect_env


def test_environment():
    from flambeau.utils import collect_env
    answers = {"gcc --version": (0, "gcc (Debian 12) 12.2.0\nCopyright", ""),
               "cat /etc/*-release": (0, 'PRETTY_NAME="Debian 12"\nVERSION=12', "")}
    def run(command):
        return answers.get(command, (1, "", "not there"))
    assert collect_env.get_gcc_version(run) == "(Debian 12) 12.2.0"
    assert collect_env.get_clang_version(run) is None
    assert collect_env.check_release_file(run) == "Debian 12"
    assert collect_env.run("echo hi") == (0, "hi", "")
    assert collect_env.run(["no-such-command"])[0] == 127
    unknown = collect_env.SystemEnv(*[None] * len(collect_env.SystemEnv._fields))
    text = collect_env.pretty_str(unknown._replace(
        torch_version="2.13", pip_packages="numpy==2", pip_version="pip3"))
    assert text.startswith("PyTorch version: 2.13\nIs debug build: Could not collect\n")
    assert "[pip3] numpy==2\n[conda] Could not collect" in text


def test_answers_of_commands():
    assert collect_env.run_and_parse_first_match(
        lambda command: (0, "release 5.3 (x)", ""), "any", r"release (\S+)") == "5.3"
    assert collect_env.run_and_read_all(lambda command: (1, "x", ""), "any") is None
    assert collect_env.run_and_read_all(lambda command: (0, "x", ""), "any") == "x"


def test_the_whole_report(monkeypatch):
    monkeypatch.setattr(collect_env, "run", lambda command: (1, "", "not there"))
    report = collect_env.get_pretty_env_info()
    assert report.startswith("PyTorch version: 2.13") and "Python version: 3." in report
    assert "Is CUDA available: False" in report


@pytest.mark.parametrize("text, expected", [("Linux", "linux"), ("Windows", "win32")])
def test_platform(text, expected, monkeypatch):
    monkeypatch.setattr(collect_env.sys, "platform", expected)
    assert collect_env.get_platform() == expected
