"""The older place of checkpoints."""
import importlib
import sys

import pytest

from flambeau.distributed import checkpoint as dcp


def test_the_older_place():
    name = "flambeau.distributed._shard.checkpoint"
    sys.modules.pop(name, None)          # it warns when it is imported, which may have been before
    with pytest.warns(DeprecationWarning, match="use `torch.distributed.checkpoint` instead"):
        checkpoint = importlib.import_module(name)
    assert checkpoint.save is dcp.save
