"""The level of logs."""
from flambeau.distributed.elastic.utils.log_level import get_log_level


def test_the_variable_is_for_loggers(monkeypatch):
    monkeypatch.setenv("LOGLEVEL", "DEBUG")
    assert get_log_level() == "WARNING"
