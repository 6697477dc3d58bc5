"""What is told of timers that are over."""
import logging

from flambeau.distributed.elastic.timer import debug_info_logging


class Keep(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def test_scopes_are_logged():
    log, kept = debug_info_logging.logger, Keep()
    level = log.level
    log.addHandler(kept)
    log.setLevel(logging.INFO)
    try:
        debug_info_logging.log_debug_info_for_expired_timers("run", {})
        assert kept.lines == []
        debug_info_logging.log_debug_info_for_expired_timers("run", {7: ["a", "b"]})
    finally:
        log.removeHandler(kept)
        log.setLevel(level)
    assert kept.lines == ["Timers expired for run:[run] [{7: ['a', 'b']}]."]
