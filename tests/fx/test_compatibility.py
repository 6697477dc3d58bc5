"""Marks of functions that keep their form."""
import pytest

from flambeau.fx import _compatibility
from flambeau.fx._compatibility import compatibility


@pytest.mark.parametrize(("kept", "doc", "kind", "note"), [
    (True, "Does.", ".. note::", "Backwards-compatibility for this API is guaranteed."),
    (False, None, ".. warning::", "This API is experimental and is *NOT* backward-compatible."),
])
def test_marks(kept, doc, kind, note):
    def f():
        return 3
    f.__doc__ = doc
    marked = compatibility(is_backward_compatible=kept)(f)
    assert marked is f and f() == 3
    assert f.__doc__ == f"{doc or ''}\n\n{kind}\n    {note}\n"
    assert (f in _compatibility._BACK_COMPAT_OBJECTS) == kept
    assert f in _compatibility._MARKED_WITH_COMPATIBILITY
