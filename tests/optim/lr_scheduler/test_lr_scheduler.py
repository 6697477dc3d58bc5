"""The package of schedulers, where pickles look for them."""
import pickle

import pytest
from schedule_tests import sgd

from flambeau.optim import lr_scheduler


def test_classes_belong_to_the_package():
    for name in lr_scheduler.__all__:
        kind = getattr(lr_scheduler, name)
        if isinstance(kind, type) and name != "_LRScheduler":
            assert kind.__module__.endswith("optim.lr_scheduler"), name
            assert pickle.loads(pickle.dumps(kind)) is kind


def test_one_value_for_each_group():
    optimizer = sgd()
    optimizer.add_param_group({"params": [], "lr": 1.0})
    assert lr_scheduler._format_param("lr", optimizer, 3) == [3, 3]
    assert lr_scheduler._format_param("lr", optimizer, (1, 2)) == [1, 2]
    with pytest.raises(ValueError, match=r"lr must have the same length as optimizer"):
        lr_scheduler._format_param("lr", optimizer, [1])


def test_the_old_name_is_a_base_too():
    assert issubclass(lr_scheduler._LRScheduler, lr_scheduler.LRScheduler)
