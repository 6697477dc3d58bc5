"""Modules made without initial values."""
from script_tests import ScriptTests


class TestScripts(ScriptTests):
    topics = ("utils/init",)
