"""What stands for parts of the tracer and the compiler that are not there."""
import pickle

import pytest

from flambeau._dynamo import _absent
from flambeau._dynamo.variables import VariableTracker
from flambeau._dynamo.variables.higher_order_ops import TorchHigherOrderOperatorVariable


def test_functions_say_what_is_missing():
    function = _absent.absent_function("torch._dynamo.eval_frame", "explain", _absent.TRACER)
    assert (function.__module__, function.__qualname__) == ("torch._dynamo.eval_frame", "explain")
    with pytest.raises(NotImplementedError, match=r"^torch._dynamo.eval_frame.explain: there is no "
                                                  "tracer"):
        function(1, mode=2)


def test_classes_can_be_derived_from_but_have_no_instances():
    cls = _absent.absent_class("torch._inductor", "Thing", _absent.COMPILER)

    class Mine(cls):
        pass
    assert issubclass(Mine, cls) and not isinstance(3, cls)
    for kind in (cls, Mine):
        with pytest.raises(NotImplementedError, match="Thing: there is no compiler"):
            kind(1)
    assert issubclass(TorchHigherOrderOperatorVariable, VariableTracker)
    assert pickle.loads(pickle.dumps(TorchHigherOrderOperatorVariable)) \
        is TorchHigherOrderOperatorVariable
