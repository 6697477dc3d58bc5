"""What stands for higher-order ops while PyTorch's tracer follows Python's frames."""
from __future__ import annotations

from typing import Any

from flambeau._dynamo._absent import TRACER, absent_class, absent_function
from flambeau._dynamo.exc import TorchDynamoException
from flambeau._dynamo.variables.base import VariableTracker

TorchHigherOrderOperatorVariable: Any = absent_class(
    __name__, "TorchHigherOrderOperatorVariable", TRACER, VariableTracker)
WrapHigherOrderVariable: Any = absent_class(
    __name__, "WrapHigherOrderVariable", TRACER, TorchHigherOrderOperatorVariable)
CondHigherOrderVariable: Any = absent_class(
    __name__, "CondHigherOrderVariable", TRACER, TorchHigherOrderOperatorVariable)
speculate_subgraph = absent_function(__name__, "speculate_subgraph", TRACER)


class Unsupported(TorchDynamoException):
    """The tracer cannot follow the program."""


def unimplemented(*, gb_type: str = "", context: str = "", explanation: str = "",
                  hints: Any = (), **options: Any) -> None:
    """Raise that the tracer cannot follow the program."""
    raise Unsupported("\n".join([gb_type, explanation, *hints]))


__all__ = ["TorchHigherOrderOperatorVariable", "speculate_subgraph", "unimplemented"]
