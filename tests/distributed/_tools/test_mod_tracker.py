"""The modules that run, and what is called as they begin and end."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed._tools.mod_tracker import ModTracker


def test_hooks_come_in_the_order_of_the_passes():
    network, tracker, seen = nn.Sequential(nn.Linear(2, 3), nn.Tanh()), ModTracker(), []

    def note(kind):
        return lambda module, *rest: seen.append((kind, tracker.get_known_fqn(module)))
    tracker.register_user_hooks(*map(note, ("in", "out", "back in", "back out")))
    with tracker:
        network(torch.ones(1, 2, requires_grad=True)).sum().backward()
    assert seen[:6] == [
        ("in", "Sequential"), ("in", "Sequential.0"), ("out", "Sequential.0"),
        ("in", "Sequential.1"), ("out", "Sequential.1"), ("out", "Sequential")]
    assert seen[6:8] == [("back in", "Sequential.1"), ("back in", "Sequential")]
    assert set(seen[8:]) == {("back in", "Sequential.0"), ("back out", "Sequential.0"),
                             ("back out", "Sequential.1"), ("back out", "Sequential")}
    assert tracker.parents == {"Global"} and not tracker.is_bw
    with pytest.raises(AssertionError, match="Only one pre_fw_hook can be registered at a time"):
        tracker.register_user_hooks(note("in"))
    tracker.clear_user_hooks()
    with tracker:
        network(torch.ones(1, 2))
    assert len(seen) == 12
