"""What stands for values while PyTorch's tracer follows Python's frames."""
from flambeau._dynamo._absent import TRACER, absent_class

VariableTracker = absent_class(__name__, "VariableTracker", TRACER)

__all__ = ["VariableTracker"]
