"""Functions that change modules in place."""
from __future__ import annotations

import pytest

from flambeau.distributed import config


def test_switches():
    with config.patch(compile_on_one_rank=True):
        assert config.compile_on_one_rank
    assert not config.compile_on_one_rank
    with pytest.raises(AttributeError, match="nope does not exist"), config.patch(nope=1):
        pass
