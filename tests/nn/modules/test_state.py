"""What a module keeps, and how it is loaded."""
from script_tests import ScriptTests


class TestScripts(ScriptTests):
    topics = ("modules/state",)
