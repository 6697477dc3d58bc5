"""Batch norm folded into the layer before it."""
from script_tests import ScriptTests


class TestScripts(ScriptTests):
    topics = ("utils/fusion",)
