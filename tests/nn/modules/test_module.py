"""Modules: members and their names, state, conversions."""
from script_tests import ScriptTests


class TestScripts(ScriptTests):
    topics = ("modules/module",)
