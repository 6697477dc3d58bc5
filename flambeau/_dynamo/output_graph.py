"""The graph that PyTorch's tracer of Python's frames writes: there is no such tracer."""
from flambeau._dynamo._absent import TRACER, absent_class

OutputGraph = absent_class(__name__, "OutputGraph", TRACER)
SubgraphTracer = absent_class(__name__, "SubgraphTracer", TRACER)
OutputGraphGuardsState = absent_class(__name__, "OutputGraphGuardsState", TRACER)
FakeRootModule = absent_class(__name__, "FakeRootModule", TRACER)
GraphCompileReason = absent_class(__name__, "GraphCompileReason", TRACER)
__all__ = ["GraphCompileReason", "OutputGraph", "SubgraphTracer"]
