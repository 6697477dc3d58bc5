"""Orthogonal weights, and norms of weights."""
from script_tests import ScriptTests


class TestScripts(ScriptTests):
    topics = ("utils/parametrizations",)
