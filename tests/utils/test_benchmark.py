"""torch.utils.benchmark."""
from __future__ import annotations

import pytest

import flambeau
from flambeau.utils.benchmark import Compare, Measurement, TaskSpec, Timer, select_unit, trim_sigfig

TASK = TaskSpec("x+y", "x=1;y=2", label="L", sub_label="S", description="D")


def test_reports():
    report = repr(Measurement(100, [4.366e-6], TASK)).splitlines()
    assert report[1:] == ["L: S", "D", "setup: x=1;y=2", "  43.66 ns",
                          "  1 measurement, 100 runs , 1 thread"]
    report = repr(Measurement(10, [0.01, 0.011, 0.012, 0.010, 0.013], TASK)).splitlines()
    assert report[4:] == [
        "  Median: 1.10 ms", "  IQR:    0.20 ms (1.00 to 1.20)",
        "  5 measurements, 10 runs per measurement, 1 thread",
        "  WARNING: Interquartile range is 18.2% of the median measurement.",
        "           This could indicate system fluctuation."]


def test_statistics():
    found = Measurement(10, [0.01, 0.011, 0.012, 0.010, 0.013], TASK)
    assert found.mean == pytest.approx(0.00112) and found.median == pytest.approx(0.0011)
    assert found.iqr == pytest.approx(0.0002) and found.has_warnings
    assert found.significant_figures == 1 and not found.meets_confidence()
    merged, = Measurement.merge([found, found])
    assert merged.number_per_run == 1 and len(merged.times) == 10


def test_a_timer_runs_the_statement():
    count = []
    timer = Timer("count.append(1)", globals={"count": count}, num_threads=1)
    assert timer.timeit(100).number_per_run == 100 and len(count) >= 100
    found = Timer("x + x", "x = torch.ones(2)").blocked_autorange(min_run_time=0.002)
    assert found.median > 0 and sum(found.raw_times) >= 0.002
    assert Timer("pass").adaptive_autorange(threshold=10, max_run_time=0.1).median > 0
    assert flambeau.get_num_threads() >= 1


def test_tables():
    text = str(Compare([Measurement(10, [0.011], TASK)]))
    assert text == ("[----- L -----]\n         |   D \n1 threads: ----\n      S  |  1.1\n\n"
                    "Times are in milliseconds (ms).\n")
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        Compare([3])


def test_numbers():
    assert select_unit(2e-9) == ("ns", 1e-9) and select_unit(5) == ("s", 1.0)
    assert trim_sigfig(1234.5, 2) == 1200.0 and trim_sigfig(0.0, 2) == 0.0


def test_parts_by_the_names_of_their_modules():
    from flambeau.utils import benchmark
    from flambeau.utils.benchmark.utils import common, compare, timer
    assert common.Measurement is benchmark.Measurement and timer.Timer is benchmark.Timer
    assert compare.Compare is benchmark.Compare
    assert common.ordered_unique([3, 1, 3]) == [3, 1]
    import flambeau
    before = flambeau.get_num_threads()
    with common.set_torch_threads(1):
        assert flambeau.get_num_threads() == 1
    assert flambeau.get_num_threads() == before
