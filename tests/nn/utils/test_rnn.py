"""Sequences of different lengths, packed and padded."""
from script_tests import ScriptTests


class TestScripts(ScriptTests):
    topics = ("utils/rnn",)
