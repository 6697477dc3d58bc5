"""The modules inside which a program is."""

import flambeau as torch
from flambeau.utils.module_tracker import ModuleTracker


def test_modules_that_run_are_known():
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    tracker, seen = ModuleTracker(), []
    net[0].register_forward_pre_hook(lambda *_: seen.append((set(tracker.parents), tracker.is_bw)))
    x = torch.ones(1, 2, requires_grad=True)
    with tracker:
        y = net(x)
        y.register_hook(lambda grad: seen.append((set(tracker.parents), tracker.is_bw)))
        y.sum().backward()
    assert seen == [({"Global", "Sequential", "Sequential.0"}, False),
                    ({"Global", "Sequential", "Sequential.1"}, True)]
    assert tracker.parents == {"Global"}


def test_modules_that_are_called_twice():
    inner = torch.nn.Linear(2, 2)

    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return self.inner(self.inner(x))
    seen = []
    inner.register_forward_pre_hook(lambda *_: seen.append(sorted(tracker.parents)))
    with ModuleTracker() as tracker:
        Twice()(torch.ones(1, 2))
    assert seen == [["Global", "Twice", "Twice.inner"]] * 2
    inner(torch.ones(1, 2))
    assert seen[2] == ["Global"]       # hooks ended with the block
