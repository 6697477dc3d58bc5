"""Parameters that are computed from others."""
from script_tests import ScriptTests


class TestScripts(ScriptTests):
    topics = ("utils/parametrize",)
