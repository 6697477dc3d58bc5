"""Passes in the order that their constraints want."""
import pytest

from flambeau.fx.passes import pass_manager
from flambeau.fx.passes.pass_manager import PassManager


def plus_one(x):
    return x + 1


def twice(x):
    return 2 * x


def test_passes_run_one_after_the_other():
    manager = PassManager([plus_one, twice])
    assert manager(3) == 8
    manager.add_pass(plus_one)
    assert manager(3) == 9
    manager.add_constraint(pass_manager.this_before_that_pass_constraint(twice, plus_one))
    with pytest.raises(RuntimeError, match="pass schedule constraint violated"):
        manager(3)
    manager.remove_pass(["plus_one"])
    assert manager(3) == 6
    manager.replace_pass(twice, plus_one)
    assert manager(3) == 4
    assert PassManager.build_from_passlist([twice]).passes == [twice]


def test_these_come_before_those():
    constraint = pass_manager.these_before_those_pass_constraint(twice, plus_one)
    assert constraint(twice, plus_one) and not constraint(plus_one, twice)


def test_passes_made_of_others(caplog):
    assert pass_manager.loop_pass(plus_one, n_iter=3)(0) == 3
    assert pass_manager.loop_pass(plus_one, predicate=lambda x: x < 5)(0) == 5
    with pytest.raises(AssertionError, match="Exactly one of"):
        pass_manager.loop_pass(plus_one)
    with caplog.at_level("INFO"):
        assert pass_manager.log_hook(plus_one)(1) == 2
    assert "Return value: 2" in caplog.text
    assert pass_manager.inplace_wrapper(lambda found: found.append(1))([]) == [1]
