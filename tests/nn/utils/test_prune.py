"""Weights that are masked."""
from script_tests import ScriptTests


class TestScripts(ScriptTests):
    topics = ("utils/prune",)
