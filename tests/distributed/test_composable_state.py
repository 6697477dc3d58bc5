"""What is known of modules."""
import gc

import pytest

from flambeau import nn
from flambeau.distributed._composable_state import (
    _get_module_state,
    _insert_module_state,
    _State,
)


def test_what_is_known_of_a_module():
    module, state = nn.Linear(1, 1), _State()
    assert _get_module_state(module) is None
    _insert_module_state(module, state)
    assert _get_module_state(module) is state and _get_module_state(nn.Linear(1, 1)) is None
    with pytest.raises(AssertionError, match="more than once"):
        _insert_module_state(module, state)


def test_modules_that_are_their_state():
    class Both(nn.Module, _State):
        pass
    both = Both()
    assert _get_module_state(both) is both


def test_states_are_not_kept():
    module = nn.Linear(1, 1)
    _insert_module_state(module, _State())
    gc.collect()
    with pytest.raises(AssertionError, match="State has already been garbage collected"):
        _get_module_state(module)
