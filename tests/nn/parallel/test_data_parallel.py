"""DataParallel, which runs the module itself."""
from script_tests import ScriptTests


class TestScripts(ScriptTests):
    topics = ("parallel/data_parallel",)
