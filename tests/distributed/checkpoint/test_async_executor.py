"""What writes while the program goes on."""
from concurrent.futures import Future

import pytest

from flambeau.distributed.checkpoint._async_executor import _AsyncCheckpointExecutor


def test_states_that_are_being_copied():
    from flambeau.distributed.checkpoint._async_executor import staged
    future = Future()
    future.set_result({"a": 1})
    assert staged(future) == staged({"a": 1}) == {"a": 1}


def test_of_the_user():
    with pytest.raises(TypeError, match="abstract"):
        _AsyncCheckpointExecutor()
