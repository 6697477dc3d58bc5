"""Events of a profile: nesting, averages, repr."""

import pytest

from flambeau.autograd import profiler_util as util
from flambeau.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg


def event(i, name, start, end, thread=0, **other):
    return FunctionEvent(id=i, name=name, thread=thread, start_us=start, end_us=end,
                         stack=other.pop("stack", []), **other)


def test_own_time_is_without_that_of_children():
    outer, inner = event(0, "aten::a", 0, 100), event(1, "aten::b", 10, 40)
    outer.append_cpu_child(inner)
    inner.set_cpu_parent(outer)
    assert (outer.cpu_time_total, outer.self_cpu_time_total) == (100, 70)
    assert outer.cpu_time_total_str == "100.000us" and inner.cpu_parent is outer
    assert repr(outer).startswith("<FunctionEvent id=0 name=aten::a overload_name=None device_type")
    with pytest.raises(AttributeError, match="'FunctionEvent' object has no attribute 'foo_str'"):
        outer.foo_str


def test_totals():
    events = EventList([event(0, "a", 0, 100), event(1, "b", 200, 260)])
    assert events.self_cpu_time_total == 160
    total = events.total_average()
    assert (total.key, total.count, total.cpu_time) == ("Total", 2, 80)


def test_sums_are_of_one_key():
    with pytest.raises(AssertionError, match="Expected keys to match, but got b vs a"):
        FunctionEventAvg().add(event(0, "a", 0, 1)).add(event(1, "b", 0, 1))


@pytest.mark.parametrize("function, value, text", [
    (util._format_time, 999.9, "999.900us"), (util._format_time, 1000, "1.000ms"),
    (util._format_time, 2.5e6, "2.500s"), (util._format_memory, 1023, "1023 B"),
    (util._format_memory, -2048, "-2.00 KB"), (util._format_memory, 1 << 31, "2.00 GB")])
def test_units(function, value, text):
    assert function(value) == text


def test_shares():
    assert util._format_time_share(1, 3) == "33.33%" and util._format_time_share(0, 0) == "NaN"
    with pytest.raises(AssertionError, match="Expected time_us == 0 but got 1"):
        util._format_time_share(1, 0)


def test_stacks_for_flame_graphs(tmp_path):
    events = EventList([event(0, "a", 0, 100, stack=["f.py(3): g", "h.py(2): k"])])
    events.export_stacks(str(tmp_path / "stacks"), "self_cpu_time_total")
    assert (tmp_path / "stacks").read_text() == "h.py(2):_k;f.py(3):_g 100\n"
    with pytest.raises(ValueError, match="metric should be one of"):
        events.export_stacks(str(tmp_path / "stacks"), "foo")


def test_small_things():
    assert util.StringTable()["abc"] == "abc"
    assert util.Interval(1, 3).elapsed_us() == 2 and util.Kernel("k", 0, 5).duration == 5
    assert str(util.DeviceType.CPU) == "DeviceType.CPU"


def test_children_by_time():
    spans = {1: [(0, 1, 1), (1, 2, 2)], 0: [(0, 2, 3), (1, 2, 4), (1, 3, 5)]}
    events = EventList(FunctionEvent(id=i, name="", thread=t, start_us=a, end_us=b)
                       for t, all_of in spans.items() for a, b, i in all_of)
    events._populate_cpu_children()
    assert [[c.id for c in e.cpu_children] for e in events] == [[], [], [], [], [4]]


def test_averages():
    average = FunctionEventAvg()
    for start, end in ((10, 15), (20, 30)):
        average.add(FunctionEvent(id=0, name="foo", thread=0, start_us=start, end_us=end))
    average.add(average)
    assert (average.count, average.cpu_time_total, average.cpu_time) == (4, 30, 7.5)


def test_times_as_text_are_properties_of_the_class():
    times = {"cpu_time", "device_time", "cpu_time_total", "device_time_total",
             "self_cpu_time_total", "self_device_time_total"}
    assert {f"{name}_str" for name in times} <= set(dir(util.FormattedTimesMixin))
