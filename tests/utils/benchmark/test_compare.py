"""Measurements side by side."""

import pytest

from flambeau.utils.benchmark import Compare, Measurement, TaskSpec

TASK = TaskSpec("x+y", "x=1;y=2", label="L", sub_label="S", description="D")


def test_tables():
    text = str(Compare([Measurement(10, [0.011], TASK)]))
    assert text == ("[----- L -----]\n         |   D \n1 threads: ----\n      S  |  1.1\n\n"
                    "Times are in milliseconds (ms).\n")
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        Compare([3])
