"""Anomaly mode: where a failing or NaN gradient comes from."""
import copy

import pytest

import flambeau as torch


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_nesting_and_switching():
    with torch.autograd.set_detect_anomaly(True, check_nan=False) as nothing:
        assert nothing is None and torch.is_anomaly_enabled()
        assert not torch.is_anomaly_check_nan_enabled()
        with torch.autograd.detect_anomaly() as nothing:
            assert nothing is None and torch.is_anomaly_check_nan_enabled()
        assert not torch.is_anomaly_check_nan_enabled()
    assert not torch.is_anomaly_enabled()
    torch.autograd.set_detect_anomaly(True)
    assert torch.is_anomaly_enabled()
    switch = torch.autograd.set_detect_anomaly(False)
    assert switch.prev is True and switch.prev_check_nan is True
    assert not torch.is_anomaly_enabled()


@pytest.mark.filterwarnings("ignore")
def test_nan_is_let_through_if_not_asked_for():
    x = torch.zeros(1, requires_grad=True)
    with torch.autograd.detect_anomaly(check_nan=False):
        (x.sqrt() * 0).sum().backward()
    assert x.grad.isnan().all()


@pytest.mark.filterwarnings("ignore")
def test_the_output_is_numbered():
    x = torch.zeros(1, requires_grad=True)
    with torch.autograd.detect_anomaly(), pytest.raises(
            RuntimeError, match=r"Function 'SqrtBackward0' returned nan values in its 0th output."):
        (x.sqrt() * 0).sum().backward()


def test_arguments():
    with pytest.raises(TypeError, match=r"argument 'enabled' \(position 1\) must be bool, not int"):
        torch.autograd.set_detect_anomaly(3)
    with pytest.raises(TypeError, match=r"argument 'check_nan' \(position 2\) must be bool, not"):
        torch.autograd.set_detect_anomaly(False, 3)


def test_anomaly_mode_shows_the_users_lines():
    def forward():
        x = torch.zeros(2, requires_grad=True)
        return (x.sqrt() * 0).sum()
    assert not torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()
    with pytest.warns(UserWarning, match="has been enabled"), torch.autograd.detect_anomaly():
        assert torch.is_anomaly_enabled()
        inside = forward()
    with pytest.warns(UserWarning) as caught, pytest.raises(RuntimeError, match="nan values"), \
            torch.autograd.detect_anomaly():
        inside.backward()
    shown = str(caught[-1].message)
    assert shown.startswith("Error detected in SqrtBackward0. Traceback of forward call")
    assert shown.rstrip().endswith("return (x.sqrt() * 0).sum()")

    outside = forward()
    with pytest.warns(UserWarning) as caught, pytest.raises(RuntimeError, match="nan values"), \
            torch.autograd.detect_anomaly():
        outside.backward()
    shown = str(caught[-1].message)
    assert "No forward pass information available" in shown
    assert shown.endswith("return (x.sqrt() * 0).sum()")


def test_copies_of_switches_switch_nothing():
    before = torch.is_anomaly_enabled(), torch.is_grad_enabled()
    switches = torch.autograd.set_detect_anomaly(not before[0]), \
        torch.set_grad_enabled(not before[1])
    torch.autograd.set_detect_anomaly(before[0])
    torch.set_grad_enabled(before[1])
    for switch in switches:
        for copied in (copy.copy(switch), copy.deepcopy(switch)):
            assert type(copied) is type(switch) and copied.mode is switch.mode
    assert (torch.is_anomaly_enabled(), torch.is_grad_enabled()) == before


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_switches_are_truth_values():
    with pytest.raises(TypeError, match=r"'check_nan' \(position 2\) must be bool, not int"):
        torch.autograd.detect_anomaly(check_nan=1).__enter__()
    assert not torch.is_anomaly_enabled()
