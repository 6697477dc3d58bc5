"""Causal masks that are never made."""
from script_tests import ScriptTests


class TestScripts(ScriptTests):
    topics = ("attention/bias",)
