"""What was measured, and how far to trust it."""

import pytest

from flambeau.utils.benchmark import Measurement, TaskSpec, select_unit, trim_sigfig

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


def test_numbers():
    assert select_unit(2e-9) == ("ns", 1e-9) and select_unit(5) == ("s", 1.0)
    assert trim_sigfig(1234.5, 2) == 1200.0 and trim_sigfig(0.0, 2) == 0.0
