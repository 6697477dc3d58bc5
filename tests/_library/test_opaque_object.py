"""Types that ops take as they are."""
import pytest

from flambeau._library import opaque_object as opaque


class Reference:
    pass


class Value:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return self.n == other.n

    def __hash__(self):
        return hash(self.n)

    def __fx_repr__(self):
        return f"Value({self.n})", {"Value": Value}


@pytest.fixture(autouse=True, scope="module")
def registered():
    opaque.register_opaque_type(Reference, typ="reference")
    opaque.register_opaque_type(Value, typ="value")


def test_kinds():
    assert opaque.is_opaque_type(Reference) and opaque.is_opaque_type(Value)
    assert opaque.is_opaque_reference_type(Reference) and opaque.is_opaque_value_type(Value)
    assert not opaque.is_opaque_reference_type(Value)
    assert not opaque.is_opaque_value_type(Reference)
    assert opaque.is_opaque_value(Reference()) and not opaque.is_opaque_value(3)
    assert not opaque.is_opaque_type(int) and not opaque.is_opaque_value_type(str)


def test_what_is_refused():
    class Plain:
        pass
    with pytest.raises(TypeError, match="is expected to have a non-default `__eq__`"):
        opaque.register_opaque_type(Plain, typ="value")
    with pytest.raises(AssertionError, match="must be either 'reference' or 'value', got 'other'"):
        opaque.register_opaque_type(Plain, typ="other")
    assert not opaque.is_opaque_type(Plain)
