"""Padding by numbers, by reflection, by the edge, around."""
from module_tests import ModuleTests
from nn_cases import Cases

cases = Cases()
for n, shape in {1: (2, 3, 5), 2: (2, 3, 4, 5), 3: (1, 2, 4, 5, 6)}.items():
    sides = tuple([1, 2, 0, 1, 2, 1][: 2 * n])
    for kind in ("Zero", "Reflection", "Replication", "Circular"):
        cases.plain(f"{kind}Pad{n}d", shape, options=f"{sides}")
    cases.plain(f"ConstantPad{n}d", shape, options=f"{sides}, 1.5")


class TestLayers(ModuleTests):
    cases = cases
