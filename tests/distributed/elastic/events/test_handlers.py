"""Where events are written."""
import logging

import pytest

from flambeau.distributed.elastic.events.handlers import get_logging_handler


@pytest.mark.parametrize(("destination", "kind"), [
    ("console", logging.StreamHandler), ("dynamic_rendezvous", logging.NullHandler),
    ("null", logging.NullHandler)])
def test_destinations(destination, kind):
    assert type(get_logging_handler(destination)) is kind


def test_the_default_and_none():
    assert get_logging_handler() is get_logging_handler("null")
    with pytest.raises(KeyError):
        get_logging_handler("nowhere")
