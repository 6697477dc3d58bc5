"""The package: what it offers."""
from script_tests import ScriptTests


class TestScripts(ScriptTests):
    topics = ("nn",)
