import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))      # what test files of all folders share


@pytest.fixture
def no_loops(monkeypatch):
    """While it lasts, vmap may not call an op once for each slice."""
    def looped(op, *args):
        raise AssertionError(f"{op.name} was called for each slice")

    monkeypatch.setattr("flambeau.transforms.batching._batch_by_loop", looped)
