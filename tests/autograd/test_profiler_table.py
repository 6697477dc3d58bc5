"""The table of a profile, as PyTorch prints it."""
import pytest

from flambeau.autograd.profiler_util import EventList, FunctionEvent


def events(**settings):
    def event(i, name, start, end, thread=0, stack=(), **other):
        return FunctionEvent(id=i, name=name, thread=thread, start_us=start, end_us=end,
                             stack=list(stack), **other)
    made = EventList([
        event(0, "aten::outer", 0, 100, input_shapes=[[2, 3], []], cpu_memory_usage=2048,
              stack=["f.py(3): g", "h.py(2): k"], flops=3000),
        event(1, "aten::inner", 10, 40, stack=["f.py(3): g"], cpu_memory_usage=512),
        event(2, "aten::inner", 50, 60.5, cpu_memory_usage=-512),
        event(3, "a name that is longer than all other names, of more than fifty-five letters",
              0, 2500000, thread=1)], **settings)
    made._build_tree() if hasattr(made, "_build_tree") else made._populate_cpu_children()
    return made


def rows(table):
    return [line.split() for line in table.splitlines() if line.startswith(" ")]


def test_averages_by_time():
    table = events().key_averages().table(sort_by="cpu_time_total", row_limit=3)
    lines = table.splitlines()
    assert lines[0] == lines[2] == "  ".join(["-" * 55] + ["-" * 12] * 6) + "  "
    assert lines[3] == ("a name that is longer than all other names, of more ...       100.00%"
                        "        2.500s       100.00%        2.500s        2.500s             1  ")
    assert [row[0] for row in rows(table)] == ["Name", "aten::outer", "aten::inner"]
    assert "Self CPU time total: 2.500s" in lines


def test_frames_stand_below_each_other_on_the_left():
    table = events().table(max_name_column_width=12, row_limit=1)
    lines = table.splitlines()
    start = lines[1].index("Source Location")
    assert [line[start:].rstrip() for line in lines[3:6]] == ["f.py(3): g", "h.py(2): k", ""]
    assert not lines[4][:start].strip()


@pytest.mark.parametrize("settings, title, cell", [
    ({"profile_memory": True}, "Self CPU Mem", "2.00 KB"),
    ({"with_flops": True}, "Total KFLOPs", "3.000")])
def test_further_columns(settings, title, cell):
    table = events(**settings).key_averages().table()
    assert title in table and cell in table


def test_header_and_top_level():
    table = events().table(header="Head", top_level_events_only=True, row_limit=-1)
    lines = table.splitlines()
    assert set(lines[0]) == {"="} and lines[1] == "Head" and lines[0] == lines[2]
    assert lines[3] == "This report only display top-level ops statistics"
    assert len(lines[0]) == len(lines[4]) - 2
    assert "aten::inner" not in table


def test_units_and_nothing():
    assert "0.100ms" in events().table(time_unit="ms")
    assert EventList([]).table() == ""
