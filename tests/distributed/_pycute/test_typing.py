"""What counts as a number."""
from flambeau.distributed._pycute.typing import Integer


def test_integers():
    assert isinstance(3, Integer) and issubclass(int, Integer)
    for other in (True, 3.0, "3", None):
        assert not isinstance(other, Integer)


def test_classes_of_the_user():
    class Number(int):
        pass

    class Other:
        pass
    assert isinstance(Number(3), Integer) and not isinstance(Other(), Integer)
