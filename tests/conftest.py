"""Settings for all tests."""

import signal
import threading

import hypothesis

# The same examples in every run, and no limit on the time of one: machines differ.
hypothesis.settings.register_profile("flambeau", deadline=None, derandomize=True)
hypothesis.settings.load_profile("flambeau")

# A shell ignores interrupts on behalf of what it runs in the background, and Python then leaves
# them ignored: tests that send one would wait for it without end.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
