"""Parameters in lists and dictionaries."""
from script_tests import ScriptTests


class TestScripts(ScriptTests):
    topics = ("modules/container/parameters",)
