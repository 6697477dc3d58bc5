"""What a data loader is made of."""
from flambeau.utils.data import _utils


def test_the_end_of_the_interpreter_is_known(monkeypatch):
    monkeypatch.setattr(_utils, "python_exit_status", False)
    _utils._set_python_exit_flag()
    assert _utils.python_exit_status is True
    assert _utils.MP_STATUS_CHECK_INTERVAL == 5.0 and _utils.HAS_NUMPY
