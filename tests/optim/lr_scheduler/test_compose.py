"""Schedulers made of schedulers."""
import pytest
from schedule_tests import ScheduleTests, rates, sgd

from flambeau.optim import lr_scheduler as schedulers


class TestSchedules(ScheduleTests):
    names = ("sequential", "sequential, restarts", "chained")


def test_one_after_the_other():
    """Each begins at its own step 0, with the rate that the optimiser had at first."""
    optimizer = sgd(lr=1.0)
    scheduler = schedulers.SequentialLR(optimizer, [
        schedulers.ConstantLR(optimizer, 0.25, 9), schedulers.ExponentialLR(optimizer, 0.5)], [2])
    assert rates(scheduler, 4) == pytest.approx([0.25, 0.25, 1.0, 0.5, 0.25])


def test_all_at_once():
    optimizer = sgd(lr=1.0)
    scheduler = schedulers.ChainedScheduler([
        schedulers.ConstantLR(optimizer, 0.25, 2), schedulers.ExponentialLR(optimizer, 0.5)])
    assert rates(scheduler, 3) == pytest.approx([0.25, 0.125, 0.25, 0.125])


def test_state_has_that_of_each_member():
    optimizer = sgd()
    members = [schedulers.ConstantLR(optimizer), schedulers.ExponentialLR(optimizer, 0.5)]
    scheduler = schedulers.ChainedScheduler(members)
    rates(scheduler, 2)
    state = scheduler.state_dict()
    assert [each["last_epoch"] for each in state["_schedulers"]] == [2, 2]
    assert scheduler._schedulers == members          # they are still there
    again = schedulers.ChainedScheduler([schedulers.ConstantLR(optimizer),
                                         schedulers.ExponentialLR(optimizer, 0.1)])
    again.load_state_dict(state)
    assert again._schedulers[1].gamma == 0.5 and len(state["_schedulers"]) == 2


def test_members_share_an_optimizer():
    one, other = sgd(), sgd()
    members = [schedulers.ConstantLR(one), schedulers.ConstantLR(other)]
    with pytest.raises(ValueError, match="expects all schedulers to belong to the same optimizer"):
        schedulers.SequentialLR(one, members, [2])
    with pytest.raises(ValueError, match="expects all schedulers to belong to the same optimizer"):
        schedulers.ChainedScheduler(members)
    with pytest.raises(ValueError, match="does not support `ReduceLROnPlateau`"):
        schedulers.SequentialLR(one, [members[0], schedulers.ReduceLROnPlateau(one)], [2])


@pytest.mark.parametrize("make, message", [
    (lambda: schedulers.SequentialLR(sgd(), [], []), "expects at least one scheduler"),
    (lambda: schedulers.ChainedScheduler([]), "expects at least one scheduler to be"),
])
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_milestones_are_one_less_than_schedulers():
    optimizer = sgd()
    with pytest.raises(ValueError, match="number of schedulers provided to be one more than"):
        schedulers.SequentialLR(optimizer, [schedulers.ConstantLR(optimizer)], [2])
