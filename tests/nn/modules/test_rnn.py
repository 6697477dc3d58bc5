"""Recurrent layers, cells, and layers that pack their input."""
from module_tests import ModuleTests
from nn_cases import Cases
from script_tests import ScriptTests

from flambeau import nn

cases = Cases()
for name in ("RNN", "GRU", "LSTM"):
    make = lambda t, name=name, **options: getattr(t.nn, name)(3, 4, **options)
    state = (1, 2, 4)
    cases(name, make, (5, 2, 3))
    cases(f"{name}-deep", lambda t, make=make: make(
        t, num_layers=2, bidirectional=True, batch_first=True), (2, 5, 3))
    cases(f"{name}-unbatched", lambda t, make=make: make(t, bias=False), (5, 3))
    cases(f"{name}-state", make, (5, 2, 3), [state, state] if name == "LSTM" else state)
    cases.plain(f"{name}Cell", (2, 3), options="3, 4")
    cases(f"{name}-packed", lambda t, make=make: packed(t, make(t, bidirectional=True)), (4, 3, 3))
cases("RNN-relu", lambda t: t.nn.RNN(3, 4, nonlinearity="relu"), (5, 2, 3))
cases("RNNCell-relu", lambda t: t.nn.RNNCell(3, 4, nonlinearity="relu"), (2, 3), (2, 4))
cases("LSTM-projected", lambda t: t.nn.LSTM(3, 4, 2, proj_size=2), (5, 2, 3))


def packed(t, layer):
    """A recurrent layer that packs its input, with lengths 2, 4 and 1."""
    rnn = t.nn.utils.rnn

    class Packed(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            packed = rnn.pack_padded_sequence(x, [2, 4, 1], enforce_sorted=False)
            output, state = self.layer(packed)
            return rnn.pad_packed_sequence(output), state

    return Packed()


class TestLayers(ModuleTests):
    cases = cases


class TestScripts(ScriptTests):
    topics = ("modules/rnn",)


def test_members_are_in_the_order_of_their_making():
    public = [[name for name in vars(layer) if name[0] != "_"] for layer in (
        nn.RNN(2, 3), nn.PReLU(), nn.ConstantPad1d(1, 2.0))]
    assert public[0][:3] == ["nonlinearity", "training", "mode"]
    assert public[1] == ["num_parameters", "training", "init"]
    assert public[2] == ["training", "value", "padding"]
