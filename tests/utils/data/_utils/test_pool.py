"""The worker processes of a loader, as the main process sees them."""
import signal
import threading

import pytest

from flambeau.utils.data._utils import pool


class Process:
    """Stands for a process that has been made and not started."""

    def __init__(self, target, args, daemon):
        self.args, self.daemon, self.pid, self.started = args, daemon, 4711, False

    def start(self):
        self.started = True


class Context:
    Process = Process

    @staticmethod
    def Pipe():
        import multiprocessing
        return multiprocessing.Pipe()


def test_a_worker_is_a_process_and_a_connection():
    worker = pool.Worker(Context, ("arguments",))
    assert worker.pid == 4711 and worker.daemon and worker.args[1:] == ("arguments",)
    worker.start()
    assert worker.started and worker._theirs.closed
    worker.ask("fetch", 1, [2])          # nobody is there: noticed when the answer is awaited
    with pytest.raises((EOFError, ConnectionError)):
        worker.connection.recv()


def test_interrupts_wait_while_processes_start():
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals come to the main thread")
    with pytest.raises(KeyboardInterrupt):
        with pool.held_interrupts(True):
            signal.raise_signal(signal.SIGINT)
            survived = True
        survived = False
    assert survived
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
