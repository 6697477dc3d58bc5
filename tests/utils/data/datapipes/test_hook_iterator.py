"""How far a pipe's iteration is."""
from flambeau.utils.data.datapipes._hook_iterator import _SnapshotState
from flambeau.utils.data.datapipes.iter import IterableWrapper


def test_states_of_a_pipe():
    pipe = IterableWrapper([1, 2])
    assert pipe._snapshot_state is _SnapshotState.NotStarted
    iterator = iter(pipe)
    next(iterator)
    assert pipe._snapshot_state is _SnapshotState.Iterating
    assert [state.value for state in _SnapshotState] == [0, 1, 2]
