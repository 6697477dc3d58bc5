"""Weights over their largest singular value, by hooks."""
from script_tests import ScriptTests


class TestScripts(ScriptTests):
    topics = ("utils/spectral_norm",)
