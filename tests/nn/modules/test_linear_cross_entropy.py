"""Cross entropy of a linear layer's scores."""
from module_tests import ModuleTests
from nn_cases import Cases, ints
from script_tests import ScriptTests

cases = Cases()
for reduction in ("mean", "sum", "none"):
    cases.plain("LinearCrossEntropyLoss", (3, 5), ints(6, (3,)),
                options=f"5, 6, bias=True, reduction={reduction!r}",
                name=f"LinearCrossEntropyLoss-27-{reduction}")


class TestLayers(ModuleTests):
    cases = cases


class TestScripts(ScriptTests):
    topics = ("modules/linear_cross_entropy",)
