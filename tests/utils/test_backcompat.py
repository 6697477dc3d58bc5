"""Switches of warnings of old."""

from flambeau.utils import backcompat


def test_switches():
    for warning in (backcompat.broadcast_warning, backcompat.keepdim_warning):
        before = warning.enabled
        warning.enabled = not before
        assert warning.enabled is not before
        warning.enabled = before
    assert backcompat.broadcast_warning is not backcompat.keepdim_warning


def test_a_switch_by_its_methods():
    warning = backcompat.keepdim_warning
    warning.set_enabled(True)
    assert warning.get_enabled() and warning.enabled
    warning.set_enabled(False)
