"""Weights as length and direction, by hooks."""
from script_tests import ScriptTests


class TestScripts(ScriptTests):
    topics = ("utils/weight_norm",)
