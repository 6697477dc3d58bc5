"""Numbers about a running program, sent to a handler that the program chooses: see `api`."""
from __future__ import annotations

from flambeau.distributed.elastic.metrics.api import (
    ConsoleMetricHandler,
    MetricData,
    MetricHandler,
    MetricsConfig,
    NullMetricHandler,
    configure,
    get_elapsed_time_ms,
    getStream,
    prof,
    profile,
    publish_metric,
    put_metric,
)


def initialize_metrics(cfg: MetricsConfig | None = None) -> None:
    """Has nothing to set up; `configure` chooses handlers."""
