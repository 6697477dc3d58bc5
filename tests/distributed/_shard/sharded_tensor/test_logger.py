"""The logger of sharded tensors."""
import logging

import pytest

from flambeau.distributed._shard.sharded_tensor import logger


def test_the_default_destination_says_nothing():
    handler, name = logger._get_logging_handler()
    assert isinstance(handler, logging.NullHandler) and name == "NullHandler"
    with pytest.raises(KeyError, match="nowhere"):
        logger._get_logging_handler("nowhere")


def test_one_logger():
    found = logger._get_or_create_logger()
    assert found.name == "sharding-spec-NullHandler"
    assert found.level == logging.DEBUG and not found.propagate
    assert any(isinstance(handler, logging.NullHandler) for handler in found.handlers)
    assert logger._get_or_create_logger() is found
