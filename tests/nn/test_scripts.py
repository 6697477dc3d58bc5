"""What belongs to several modules: small details, and what functions refuse."""

from pathlib import Path

from nn_scripts import scripts
from script_tests import ScriptTests


class TestScripts(ScriptTests):
    topics = ("details", "refusals")


def test_every_topic_has_a_test_file():
    here = Path(__file__).parent
    for topic in set(scripts()) - set(TestScripts.topics):
        folder, _, name = topic.rpartition("/")
        assert f'topics = ("{topic}",)' in (here / folder / f"test_{name}.py").read_text()
