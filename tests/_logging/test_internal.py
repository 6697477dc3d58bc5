"""Levels of logs by the parts of PyTorch, and warnings that are hidden or given once."""

import logging
import warnings

import pytest

from flambeau import _logging
from flambeau._logging import _internal


@pytest.fixture(autouse=True)
def levels():
    loggers = [logging.getLogger(name) for name in ("torch", "torch._dynamo", "json.decoder")]
    before = [logger.level for logger in loggers]
    yield
    _logging.set_logs()
    for logger, level in zip(loggers, before):
        logger.setLevel(level)


def test_levels_of_parts_and_of_any_logger():
    _logging.set_logs(dynamo=logging.DEBUG, modules={"json.decoder": logging.ERROR})
    assert logging.getLogger("torch._dynamo").level == logging.DEBUG
    assert logging.getLogger("json.decoder").level == logging.ERROR


@pytest.mark.parametrize("settings, error, message", [
    ({"graph": 3}, ValueError, "Expected bool to enable artifact graph, received 3"),
    ({"inductor": 3}, ValueError, "Unrecognized log level for log inductor: 3"),
])
def test_wrong_settings(settings, error, message):
    with pytest.raises(error, match=message):
        _logging.set_logs(**settings)


def test_unknown_parts_and_traces():
    with pytest.raises((TypeError, ValueError), match="zz"):
        _logging.set_logs(zz=3)
    assert _logging.trace_structured("any") is None


def test_artifacts_have_loggers_of_their_own():
    logger = _logging.getArtifactLogger("torch.some.module", "guards")
    assert logger.name.startswith("torch.some.module") and logger.name.endswith("__guards")
    assert logger.artifact_name == "guards"
    with pytest.raises(ValueError, match="Artifact name: 'nothing' not registered"):
        _logging.getArtifactLogger("torch.some.module", "nothing")


def test_lazy_strings_are_made_when_they_are_shown():
    calls = []

    def text(number, end="."):
        calls.append(number)
        return f"{number}{end}"
    lazy = _logging.LazyString(text, 3, end="!")
    assert calls == []
    assert str(lazy) == f"{lazy}" == "3!" and calls == [3, 3]


def test_a_warning_is_logged_once(caplog):
    logger = logging.getLogger("json.decoder")
    with caplog.at_level(logging.WARNING, "json.decoder"):
        for number in (1, 1, 2):
            _internal.warning_once(logger, "seen %s", number)
    assert [record.getMessage() for record in caplog.records] == ["seen 1", "seen 2"]


def test_only_chosen_warnings_are_shown(monkeypatch):
    shown = []

    def show(message, *args, **kwargs):
        shown.append(str(message))

    def is_a(message, category, filename, lineno, file=None, line=None):
        return str(message) == "a"

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", show)
        with _internal.hide_warnings(is_a):
            warnings.warn("a", stacklevel=1)
            warnings.warn("b", stacklevel=1)
        assert warnings.showwarning is show
        warnings.warn("b", stacklevel=1)
    assert shown == ["a", "b"]
