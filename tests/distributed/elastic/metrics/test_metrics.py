"""The package: it needs nothing set up, and forgets what nobody asks for."""
from __future__ import annotations

from flambeau.distributed.elastic import metrics


def test_nothing_to_set_up(capsys):
    assert metrics.initialize_metrics() is None
    assert metrics.initialize_metrics(metrics.MetricsConfig({"a": "b"})) is None
    metrics.put_metric("of_nobody", 1, "a group")
    assert capsys.readouterr().out == ""


def test_configuration():
    assert metrics.MetricsConfig().params == {}
    given = {"a": "b"}
    assert metrics.MetricsConfig(given).params == given


def test_the_console(capsys):
    metrics.ConsoleMetricHandler().emit(metrics.MetricData(12.7, "group", "name", 3))
    assert capsys.readouterr().out == "[12.7][group]: name=3\n"
