"""Hooks of modules."""
from script_tests import ScriptTests


class TestScripts(ScriptTests):
    topics = ("modules/hooks",)
