"""Types in annotations, and small things that scripts use."""
from __future__ import annotations

import pytest

from flambeau import jit

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")


def test_small_things():
    assert not jit.is_scripting() and jit.annotate(int, 3) == 3
    assert jit.isinstance([1], list[int]) and not jit.isinstance([1.5], list[int])
    assert jit.isinstance({"a": 1}, dict[str, int]) and jit.isinstance((1, "a"), tuple[int, str])
    assert jit.isinstance(None, int | None) and not jit.isinstance(3, (str, float))
    assert jit.wait(jit.fork(lambda x: x + 1, 1)) == 2
    with pytest.warns(DeprecationWarning, match=r"`torch\.jit\.script` is deprecated"):
        jit.script(lambda x: x)
