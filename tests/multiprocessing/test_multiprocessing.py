"""The strategies by which memory is shared, and names of threads."""
import multiprocessing

import pytest

import flambeau.multiprocessing as mp


def test_strategies():
    before = mp.get_sharing_strategy()
    assert before in mp.get_all_sharing_strategies()
    try:
        mp.set_sharing_strategy("file_system")
        assert mp.get_sharing_strategy() == "file_system"
    finally:
        mp.set_sharing_strategy(before)
    with pytest.raises(AssertionError):
        mp.set_sharing_strategy("telepathy")


def test_names_of_python_are_there():
    assert mp.Process is multiprocessing.Process and set(multiprocessing.__all__) <= set(mp.__all__)


def test_names_of_threads():
    before = mp._get_thread_name()
    try:
        mp._set_thread_name("tester")
        assert mp._get_thread_name() == "tester"
    finally:
        mp._set_thread_name(before)
