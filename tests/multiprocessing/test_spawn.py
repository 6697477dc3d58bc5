"""Processes that run one function, and the first of them that fails."""
import pickle
import sys

import pytest

import flambeau.multiprocessing as mp
from flambeau.multiprocessing.spawn import ProcessException

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked here")


def succeed(number, value):
    assert value == "x"


def fail_in_the_second(number):
    if number == 1:
        raise ValueError("number 1")
    import time
    time.sleep(30)


def end_itself(number):
    import os
    import signal
    os.kill(os.getpid(), signal.SIGKILL)


def test_all_succeed():
    assert mp.start_processes(succeed, ("x",), 2, start_method="fork") is None
    context = mp.start_processes(succeed, ("x",), 2, join=False, start_method="fork")
    assert len(context.pids()) == 2 and not isinstance(context, mp.SpawnContext)
    while not context.join(timeout=10):
        pass
    assert mp.start_processes(succeed, ("x",), 0, start_method="fork") is None


def test_the_error_of_one_ends_all():
    context = mp.start_processes(fail_in_the_second, (), 2, join=False, start_method="fork")
    with pytest.raises(mp.ProcessRaisedException, match=r"(?s)Process 1 terminated with.*number 1"
                       ) as caught:
        while not context.join():
            pass
    assert caught.value.error_index == 1 and caught.value.error_pid == context.pids()[1]
    assert not any(process.is_alive() for process in context.processes)


def test_signals_are_named():
    with pytest.raises(mp.ProcessExitedException, match="terminated with signal SIGKILL") as caught:
        mp.start_processes(end_itself, (), 1, start_method="fork")
    assert (caught.value.exit_code, caught.value.signal_name) == (-9, "SIGKILL")


@pytest.mark.parametrize("error", [
    mp.ProcessRaisedException("text", 1, 2), mp.ProcessExitedException("text", 1, 2, -9, "SIGKILL"),
    ProcessException("text", 1, 2)])
def test_errors_can_be_pickled(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and vars(again) == vars(error) and str(again) == "text"


def test_spawn_is_of_one_method():
    with pytest.warns(FutureWarning, match="This method only supports start_method=spawn"):
        mp.spawn(succeed, ("x",), 0, start_method="fork")
