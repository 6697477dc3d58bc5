"""The types of the profiler."""

import pickle

import pytest

from flambeau._C import _profiler


@pytest.mark.parametrize("kind, numbers", [
    ("ProfilerState", {"Disabled": 0, "CPU": 1, "KINETO": 6, "KINETO_PRIVATEUSE1": 9}),
    ("ActiveProfilerType", {"NONE": 0, "LEGACY": 1, "KINETO": 2, "PRIVATEUSE1": 5}),
    ("RecordScope", {"FUNCTION": 0, "BACKWARD_FUNCTION": 1, "USER_SCOPE": 7}),
])
def test_numbers(kind, numbers):
    members = getattr(_profiler, kind)
    assert {name: getattr(members, name).value for name in numbers} == numbers


def test_options_are_kept_and_travel():
    config = _profiler._ExperimentalConfig(profiler_metrics=["cycles"], verbose=True)
    again = pickle.loads(pickle.dumps(config))
    assert type(again) is _profiler._ExperimentalConfig
    assert _profiler._ExperimentalConfig() is not None


def test_unknown_options():
    with pytest.raises(TypeError):
        _profiler._ExperimentalConfig(no_such_option=True)
