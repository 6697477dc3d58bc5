"""Stopping in the code that is made of a graph."""
import pdb

from flambeau import fx
from flambeau.fx.experimental.debug import set_trace


def test_the_debugger_is_entered_first(monkeypatch):
    stops = []
    monkeypatch.setattr(pdb, "set_trace", lambda: stops.append(True))
    gm = set_trace(fx.symbolic_trace(lambda x: x + 1))
    assert gm(2) == 3 and stops == [True] and "pdb.set_trace()" in gm.code
