"""Smooth activations."""
from module_tests import ModuleTests
from nn_cases import Cases

cases = Cases()
for name, options in {
        "SiLU": "", "Mish": "", "Sigmoid": "", "Tanh": "", "LogSigmoid": "", "Softsign": "",
        "Tanhshrink": "", "Softplus": "beta=2.0, threshold=3.0", "GELU": "", "GLU": "1"}.items():
    cases.plain(name, (3, 4), options=options)
cases("GELU-tanh", lambda t: t.nn.GELU("tanh"), (3, 4))


class TestLayers(ModuleTests):
    cases = cases
