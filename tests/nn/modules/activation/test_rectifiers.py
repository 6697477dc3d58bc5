"""Activations made of pieces."""
from module_tests import ModuleTests
from nn_cases import Cases

cases = Cases()
for name, options in {
        "ReLU": "", "ReLU6": "", "SELU": "", "Hardsigmoid": "", "Hardswish": "",
        "Softshrink": "0.3", "Hardshrink": "0.3", "ELU": "1.5", "CELU": "1.5", "LeakyReLU": "0.2",
        "Hardtanh": "-0.5, 0.7", "Threshold": "0.1, 20", "PReLU": "4"}.items():
    cases.plain(name, (3, 4), options=options)
cases.plain("RReLU", (3, 4), eval=True)
cases("ReLU-inplace-repr", lambda t: t.nn.ReLU(), (2,))


class TestLayers(ModuleTests):
    cases = cases
