"""Pickles shown without being run."""

import io
import pickle
from collections import Counter

import pytest

import flambeau as torch
from flambeau.utils import show_pickle


class Point:
    def __init__(self):
        self.x = 3


def shown(path):
    out = io.StringIO()
    assert show_pickle.main(["show_pickle", str(path)], out) is None
    return out.getvalue()


def test_classes_and_objects_are_named(tmp_path):
    path = tmp_path / "some.pkl"
    path.write_bytes(pickle.dumps([Counter, {"a": (1, None)}]))
    assert shown(path) == "[collections.Counter, {'a': (1, None)}]\n"
    path.write_bytes(pickle.dumps(Point()))
    assert shown(path) == f"{Point.__module__}.Point()(state={{'x': 3}})\n"


def test_nothing_is_run(tmp_path):
    class Harmful:
        def __reduce__(self):
            return exec, ("raise SystemExit",)

    path = tmp_path / "harmful.pkl"
    path.write_bytes(pickle.dumps(Harmful()))
    assert shown(path) == "builtins.exec('raise SystemExit',)\n"


def test_members_of_checkpoints(tmp_path):
    path = tmp_path / "model.pt"
    torch.save({"w": torch.ones(2)}, path)
    for member in ("*/data.pkl", "model/data.pkl"):
        text = shown(f"{path}@{member}")
        assert text.startswith("{'w': torch._utils._rebuild_tensor_v2(pers.obj(('storage', ")
        assert "torch.FloatStorage" in text
    with pytest.raises(KeyError, match="no item named 'other'"):
        shown(f"{path}@other")
    with pytest.raises(Exception, match="Pass argv of length 2"):
        show_pickle.main(["show_pickle"], io.StringIO())
    assert show_pickle.main(["show_pickle"]) == 2


def test_strings_that_are_no_text():
    data = b"\x80\x02X\x01\x00\x00\x00\xff."
    found = show_pickle.DumpUnpickler(io.BytesIO(data), catch_invalid_utf8=True).load()
    assert repr(found).startswith("builtin.UnicodeDecodeError(")
    with pytest.raises(UnicodeDecodeError):
        show_pickle.DumpUnpickler(io.BytesIO(data)).load()


def test_what_stands_for_objects():
    made = show_pickle.FakeObject("m", "n", (1, 2))
    assert repr(made) == "m.n(1, 2)" and made.state is None
    made.__setstate__({"a": 1})
    assert repr(made) == "m.n(1, 2)(state={'a': 1})"
    kind = show_pickle.FakeClass("m", "n")
    assert repr(kind) == "m.n" and repr(kind(3)) == "m.n(3,)"
    assert kind.fake_new(1, 2).args == (2,)
