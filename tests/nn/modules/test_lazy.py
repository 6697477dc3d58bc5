"""Modules that learn sizes from their first input."""
from script_tests import ScriptTests


class TestScripts(ScriptTests):
    topics = ("modules/lazy",)
