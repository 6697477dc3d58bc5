"""Numbers that tracing compilers leave open: there are none, and nothing takes itself for one."""
import pytest

import flambeau


@pytest.mark.parametrize("name", ["SymInt", "SymFloat", "SymBool"])
def test_there_are_none(name):
    cls = getattr(flambeau, name)
    assert not isinstance(1, cls) and cls.__module__ == "torch"
    with pytest.raises(NotImplementedError, match=f"torch.{name}"):
        cls(None)


def test_tags_are_numbers():
    assert int(flambeau.Tag.core) == 0 and int(flambeau.Tag.pointwise) == 16
    assert len({int(tag) for tag in flambeau.Tag}) == len(flambeau.Tag)
