"""Metrics of torchelastic."""
from __future__ import annotations

from flambeau.distributed.elastic import metrics


def test_metrics_go_to_the_handler_of_their_group():
    class Keep(metrics.MetricHandler):
        def __init__(self):
            self.seen = []

        def emit(self, metric_data):
            self.seen.append((metric_data.group_name, metric_data.name, metric_data.value))
    mine = Keep()
    metrics.configure(mine, "mine")
    metrics.put_metric("a", 1, "mine")
    metrics.put_metric("a", 1, "others")

    @metrics.prof(group="mine")
    def work():
        return 3
    assert work() == 3
    assert mine.seen[0] == ("mine", "a", 1) and len(mine.seen) == 3


def test_a_function_is_timed_under_its_name(capsys):
    class Model:
        @metrics.prof
        def step(self):
            raise ValueError
    metrics.configure(metrics.ConsoleMetricHandler(), "torchelastic")
    try:
        Model().step()
    except ValueError:
        pass
    finally:
        metrics.configure(metrics.NullMetricHandler(), "torchelastic")
    lines = [line.split("]: ")[1] for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "Model.step.failure=1" and lines[1].startswith("Model.step.duration.ms=")
