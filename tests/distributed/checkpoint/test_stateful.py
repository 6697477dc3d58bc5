"""Objects with a state."""
from flambeau import nn
from flambeau.distributed.checkpoint.stateful import Stateful


class Saves:
    def state_dict(self):
        return {}


class Both(Saves):
    def load_state_dict(self, state_dict):
        pass


def test_what_has_a_state():
    assert isinstance(Both(), Stateful) and isinstance(nn.Linear(1, 1), Stateful)
    assert not isinstance(Saves(), Stateful) and not isinstance({}, Stateful)
