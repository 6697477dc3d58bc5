"""Dropout of elements and of channels."""
from module_tests import ModuleTests
from nn_cases import Cases

cases = Cases()
cases("Dropout", lambda t: t.nn.Dropout(0.4), (6, 7))
cases("Dropout1d", lambda t: t.nn.Dropout1d(0.4), (2, 6, 3))
cases("Dropout2d", lambda t: t.nn.Dropout2d(0.4), (2, 6, 2, 2))
cases("Dropout3d", lambda t: t.nn.Dropout3d(0.4), (2, 6, 2, 1, 2))
cases("AlphaDropout", lambda t: t.nn.AlphaDropout(0.4), (6, 7))
cases("FeatureAlphaDropout", lambda t: t.nn.FeatureAlphaDropout(0.4), (2, 6, 3))


class TestLayers(ModuleTests):
    cases = cases
