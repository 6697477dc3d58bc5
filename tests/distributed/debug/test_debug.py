"""A server that shows what all processes are at."""
import pytest

from flambeau.distributed import debug


def test_it_has_to_be_started():
    with pytest.raises(RuntimeError, match="debug server not started"):
        debug.stop_debug_server()
