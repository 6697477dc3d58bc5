"""Short forms of stack traces."""

import pickle
import sys
import traceback

import pytest

from flambeau.utils import _traceback


def test_traces():
    assert _traceback.shorten_filename("/a/b.py", base="/a") == "b.py"
    trace = _traceback.CapturedTraceback.extract()
    assert trace.summary()[-1].name == "test_traces" and "test_traces" in trace.format()[-1]
    try:
        raise ValueError
    except ValueError:
        assert _traceback.format_traceback_short(sys.exc_info()[2]).endswith("in test_traces")
    trace.cleanup()
    assert trace.format() == []


def test_traces_show_the_source_of_compiled_functions():
    source = "def f(x):\n    def g(x):\n        raise RuntimeError()  # here\n    return g(x)\n"
    scope = {"__compile_source__": source}
    exec(source, scope)
    with pytest.raises(RuntimeError) as caught, _traceback.report_compile_source_on_error():
        scope["f"](1)
    shown = "".join(traceback.format_tb(caught.value.__traceback__))
    assert "# here" in shown and "return g(x)" in shown and "in g" in shown


@pytest.mark.parametrize("path, base, short", [
    ("/home/me/project/run.py", "/home/me/other", "project/run.py"),
    ("/a/c/b.py", "/a/d/e", "c/b.py"),
    ("relative.py", "/a", "relative.py")])
def test_short_paths(path, base, short):
    assert _traceback.shorten_filename(path, base=base) == short


def test_frames():
    frame = traceback.FrameSummary("/a/b.py", 3, "f", line="x = 1")
    assert _traceback.format_frame(frame, base="/a") == "b.py:3 in f"
    assert _traceback.format_frame(frame, base="/a", line=True) == "x = 1  # b.py:3 in f"


def test_several_traces():
    def inner():
        return _traceback.CapturedTraceback.extract(skip=1)
    trace = inner()
    assert trace.summary()[-1].name == "test_several_traces"
    texts = _traceback.CapturedTraceback.format_all([trace, trace])
    assert texts[0] == texts[1] == trace.format()
    assert pickle.loads(pickle.dumps(trace)).format() == []
