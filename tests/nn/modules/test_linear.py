"""Linear layers, bilinear ones, and those that learn their size from their input."""
from module_tests import ModuleTests
from nn_cases import Cases, warmed

cases = Cases()
cases("Identity", lambda t: t.nn.Identity(1, a=2), (2, 3))
cases("Linear", lambda t: t.nn.Linear(3, 4), (2, 5, 3))
cases("Linear-no-bias", lambda t: t.nn.Linear(3, 4, bias=False), (3,))
cases("LazyLinear", lambda t: warmed(t, "LazyLinear", (4,), (2, 3)), (2, 3))
cases("Bilinear", lambda t: t.nn.Bilinear(3, 4, 2), (5, 3), (5, 4))


class TestLayers(ModuleTests):
    cases = cases
