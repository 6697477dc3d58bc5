"""Gradients kept small."""
from script_tests import ScriptTests


class TestScripts(ScriptTests):
    topics = ("utils/clip_grad",)
