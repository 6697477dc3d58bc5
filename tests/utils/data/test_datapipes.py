"""Data pipes give what PyTorch's give, in the same order."""

import json
import pickle
from pathlib import Path

import pytest
from datapipe_cases import CASES, run

import flambeau
import flambeau.utils.data
from flambeau.utils.data.datapipes.iter import IterableWrapper

RECORDED = json.loads(
    (Path(__file__).resolve().parents[2] / "data" / "datapipes.json").read_text())


@pytest.mark.parametrize("name", CASES)
def test_like_pytorch(name):
    assert run(name, flambeau) == RECORDED[name]


def test_loader_shuffles_what_has_no_shuffler():
    with pytest.warns(UserWarning, match="Adding one at the end"):
        loader = flambeau.utils.data.DataLoader(IterableWrapper(range(9)), shuffle=True)
    assert sorted(int(b) for b in loader) == list(range(9))


def test_pickling():
    pipe = pickle.loads(pickle.dumps(IterableWrapper(range(3)).map(abs).batch(2)))
    assert list(pipe) == [[0, 1], [2]]


def test_types_are_checked():
    data = flambeau.utils.data

    class Numbers(data.IterDataPipe[int | None]):
        def __init__(self, values):
            self.values = values

        @data.runtime_validation
        def __iter__(self):
            yield from self.values

    assert list(Numbers([1, None])) == [1, None]
    with pytest.raises(RuntimeError, match="Expected an instance as subtype of"):
        list(Numbers([1, "a"]))
    with data.runtime_validation_disabled():
        assert list(Numbers([1, "a"])) == [1, "a"]

    @data.argument_validation
    def total(numbers: data.IterDataPipe[int | float | None]):
        return sum(numbers)

    assert total(Numbers([1, 2])) == 3
    with pytest.raises(TypeError, match="as a IterDataPipe, but found"):
        total([1, 2])
    with pytest.raises(TypeError, match="as a subtype of hint"):
        total(IterableWrapper("ab"))


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
