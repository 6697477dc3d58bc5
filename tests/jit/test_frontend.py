"""What is read of signatures, and errors of the parser."""
import pytest

from flambeau.jit import frontend


def test_defaults():
    def f(a, b=2, *, c="x", d): ...

    class Scaled:
        def one(self, by=3): ...
        def two(self, a): ...
    assert frontend.get_default_args(f) == {"b": 2, "c": "x"}
    assert frontend.get_default_args(None) == {}
    assert frontend.get_default_args_for_class(Scaled) == {"one": {"by": 3}, "two": {}}


def test_names():
    assert frontend.is_reserved_name("__jit_x") and frontend.is_reserved_name("print")
    assert not frontend.is_reserved_name("x")


@pytest.mark.parametrize(("cls", "base"), [
    (frontend.NotSupportedError, frontend.FrontendError),
    (frontend.UnsupportedNodeError, frontend.NotSupportedError),
    (frontend.FrontendTypeError, frontend.FrontendError), (frontend.FrontendError, Exception)])
def test_errors(cls, base):
    assert issubclass(cls, base)
