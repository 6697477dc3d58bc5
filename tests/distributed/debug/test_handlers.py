"""What the debug server of a process does."""
import json

from flambeau.distributed.debug import _handlers


def test_a_profile():
    found = json.loads(_handlers._torch_profile(0.01))
    assert isinstance(found["traceEvents"], list)
