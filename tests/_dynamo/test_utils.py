"""Warnings, counters, and what can be compiled for."""
import warnings

import pytest

from flambeau._dynamo import utils


def test_a_warning_comes_once():
    with pytest.warns(UserWarning, match="once"):
        utils.warn_once("once")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        utils.warn_once("once")


def test_the_cpu_can_compile():
    assert utils.is_compile_supported("cpu") and not utils.is_compile_supported("cuda")
    utils.counters["frames"]["ok"] += 1
    assert utils.counters.pop("frames") == {"ok": 1}
