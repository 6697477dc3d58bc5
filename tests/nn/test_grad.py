"""Gradients of convolutions."""
from script_tests import ScriptTests


class TestScripts(ScriptTests):
    topics = ("grad",)
