"""Types of tensors by their shapes."""
import pytest

from flambeau.fx.tensor_type import Dyn, TensorType, is_consistent, is_more_precise


@pytest.mark.parametrize(("a", "b", "consistent", "precise"), [
    (TensorType((1, 2)), TensorType((1, 2)), True, True),
    (TensorType((1, 2)), TensorType((1, Dyn)), True, True),
    (TensorType((1, Dyn)), TensorType((1, 2)), True, False),
    (TensorType((1, Dyn)), TensorType((Dyn, 2)), True, False),
    (TensorType((1, 2)), TensorType((1, 3)), False, False),
    (TensorType((1, 2)), TensorType((1,)), False, False),
    (TensorType((1, 2)), Dyn, True, True), (Dyn, TensorType((1,)), True, False),
    (Dyn, Dyn, True, True), (int, int, True, True), (int, float, False, False),
    (3, Dyn, True, True),
])
def test_relations(a, b, consistent, precise):
    assert is_consistent(a, b) is consistent and is_consistent(b, a) is consistent
    assert is_more_precise(a, b) is precise


def test_values():
    made = TensorType((1, Dyn, 3))
    assert repr(made) == "TensorType[(1, Dyn, 3)]" and str(Dyn) == repr(Dyn) == "Dyn"
    assert made == TensorType([1, Dyn, 3]) != TensorType((1, 2, 3)) and made != (1, Dyn, 3)
    assert TensorType[1, 2] == TensorType((1, 2)) and TensorType[4] == TensorType((4,))
    assert made.__args__ == (1, Dyn, 3) and made.__origin__ is TensorType
