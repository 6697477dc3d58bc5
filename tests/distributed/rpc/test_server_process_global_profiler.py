"""Profiling what other workers call here."""
import pytest

from flambeau.distributed.rpc.server_process_global_profiler import _server_process_global_profile


def test_it_is_not_there():
    with pytest.raises(NotImplementedError, match="profiles the thread that asks for it"):
        _server_process_global_profile()
