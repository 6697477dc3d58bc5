"""Parameters as one vector."""
from script_tests import ScriptTests


class TestScripts(ScriptTests):
    topics = ("utils/convert_parameters",)
