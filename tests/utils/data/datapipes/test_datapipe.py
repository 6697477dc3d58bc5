"""What all pipes share."""

import pickle

import pytest

from flambeau.utils.data.datapipes.iter import IterableWrapper


def test_pickling():
    pipe = pickle.loads(pickle.dumps(IterableWrapper(range(3)).map(abs).batch(2)))
    assert list(pipe) == [[0, 1], [2]]


def test_pipes_are_pickled_by_hooks_and_wrappers():
    import pickle

    from flambeau.utils.data.datapipes.datapipe import (
        IterDataPipe,
        _IterDataPipeSerializationWrapper,
        _MapDataPipeSerializationWrapper,
    )
    from flambeau.utils.data.datapipes.iter import IterableWrapper
    from flambeau.utils.data.datapipes.map import SequenceWrapper
    wrapper = pickle.loads(pickle.dumps(_IterDataPipeSerializationWrapper(
        IterableWrapper([1, 2, 3]))))
    assert list(wrapper) == [1, 2, 3] and len(wrapper) == 3
    assert pickle.loads(pickle.dumps(_MapDataPipeSerializationWrapper(
        SequenceWrapper([4, 5]))))[1] == 5
    IterDataPipe.set_getstate_hook(lambda state: {"instead": state["deepcopy"]})
    try:
        assert IterableWrapper([1]).__getstate__() == {"instead": True}
        with pytest.raises(RuntimeError, match="override existing getstate_hook"):
            IterDataPipe.set_getstate_hook(len)
    finally:
        IterDataPipe.set_getstate_hook(None)
    IterDataPipe.set_reduce_ex_hook(lambda pipe: (list, ()))
    try:
        assert pickle.loads(pickle.dumps(IterableWrapper([1]))) == []
    finally:
        IterDataPipe.set_reduce_ex_hook(None)


def test_pipes_count_what_they_have_given():
    from flambeau.utils.data.datapipes.iter import IterableWrapper
    pipe = IterableWrapper([1, 2, 3])
    assert pipe._snapshot_state.name == "NotStarted"
    next(iter(pipe))
    assert (pipe._number_of_samples_yielded, pipe._snapshot_state.name) == (1, "Iterating")
