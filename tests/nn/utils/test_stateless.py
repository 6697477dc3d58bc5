"""Modules called with other tensors, by their old name."""
from script_tests import ScriptTests


class TestScripts(ScriptTests):
    topics = ("utils/stateless",)
