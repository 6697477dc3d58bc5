"""Distances of rows."""
from module_tests import ModuleTests
from nn_cases import Cases

cases = Cases()
cases("CosineSimilarity", lambda t: t.nn.CosineSimilarity(), (3, 4), (3, 4))
cases("PairwiseDistance", lambda t: t.nn.PairwiseDistance(3.0, keepdim=True), (3, 4), (3, 4))


class TestLayers(ModuleTests):
    cases = cases
