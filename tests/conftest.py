"""Settings for all tests."""

import signal
import threading

import hypothesis
import pytest

# The same examples in every run, and no limit on the time of one: machines differ.
hypothesis.settings.register_profile("flambeau", deadline=None, derandomize=True)
hypothesis.settings.load_profile("flambeau")

# A shell ignores interrupts on behalf of what it runs in the background, and Python then leaves
# them ignored: tests that send one would wait for it without end.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

_TAKEN_OVER = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
               if hasattr(signal, name)]


@pytest.fixture(autouse=True)
def handlers_of_signals():
    """Those of before: an agent of `torchrun` takes signals over for good, as PyTorch's does."""
    before = [signal.getsignal(number) for number in _TAKEN_OVER]
    yield
    for number, handler in zip(_TAKEN_OVER, before):
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)
