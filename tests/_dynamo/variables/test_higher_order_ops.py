"""Classes of the tracer that programs derive from."""
import pytest

from flambeau._dynamo import exc
from flambeau._dynamo.variables import higher_order_ops
from flambeau._dynamo.variables.base import VariableTracker


def test_kinds_of_variables():
    base = higher_order_ops.TorchHigherOrderOperatorVariable
    assert issubclass(base, VariableTracker)
    assert issubclass(higher_order_ops.WrapHigherOrderVariable, base)
    assert issubclass(higher_order_ops.CondHigherOrderVariable, base)


def test_what_the_tracer_cannot_follow():
    with pytest.raises(exc.TorchDynamoException, match="kind of break"):
        higher_order_ops.unimplemented(gb_type="kind of break", context="here",
                                       explanation="It cannot.", hints=["Do not."])
