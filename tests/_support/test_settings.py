"""Switches of the whole process."""

import warnings

import pytest

import flambeau as torch


@pytest.fixture(autouse=True)
def as_before():
    yield
    torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision("highest")
    torch.set_warn_always(False)
    torch.set_flush_denormal(False)


def test_deterministic_algorithms():
    assert not torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True)
    assert not torch.is_deterministic_algorithms_warn_only_enabled()


@pytest.mark.parametrize("mode, number", [
    ("default", 0), ("warn", 1), ("error", 2), (0, 0), (1, 1), (2, 2)])
def test_modes_by_name_and_number(mode, number):
    torch.set_deterministic_debug_mode(mode)
    assert torch.get_deterministic_debug_mode() == number
    assert torch.are_deterministic_algorithms_enabled() is (number > 0)
    assert torch.is_deterministic_algorithms_warn_only_enabled() is (number == 1)


@pytest.mark.parametrize("call, error, message", [
    (lambda: torch.use_deterministic_algorithms("yes"), TypeError, "must be bool, not str"),
    (lambda: torch.set_deterministic_debug_mode(1.5), TypeError,
     "debug_mode must be str or int, but got <class 'float'>"),
    (lambda: torch.set_deterministic_debug_mode("loud"), RuntimeError,
     "expected one of `default`, `warn`, `error`, but got loud"),
    (lambda: torch.set_deterministic_debug_mode(3), RuntimeError,
     "expected 0, 1, or 2, but got 3"),
    (lambda: torch.set_float32_matmul_precision(1), RuntimeError,
     "set_float32_matmul_precision expects a str, but got int"),
    (lambda: torch.set_warn_always(1), RuntimeError,
     "setWarnOnlyOnce expects a bool, but got int"),
    (lambda: torch.set_flush_denormal(1), RuntimeError,
     "flush_denormal expects a bool, but got int"),
])
def test_wrong_values(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_new_memory_is_filled_while_algorithms_are_deterministic():
    torch.use_deterministic_algorithms(True)
    assert torch.empty(3).isnan().all() and torch.empty(3, dtype=torch.bool).all()
    assert torch.empty(2, dtype=torch.int16).tolist() == [32767, 32767]
    assert torch.ones(1).resize_(3)[1:].isnan().all()


@pytest.mark.parametrize("precision", ["high", "medium", "highest"])
def test_precision_of_products_is_remembered(precision):
    torch.set_float32_matmul_precision(precision)
    assert torch.get_float32_matmul_precision() == precision


def test_an_unknown_precision_changes_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.set_float32_matmul_precision("low")
    assert torch.get_float32_matmul_precision() == "highest"


def test_warnings_are_given_always_if_wanted():
    assert not torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    assert torch.is_warn_always_enabled()
    for _ in range(2):
        with pytest.warns(UserWarning, match="discards the imaginary part"):
            torch.ones(1, dtype=torch.complex64).to(torch.float32)


def test_warnings_name_the_line_of_the_program():
    """However deep the op is that warns; so each line is warned of once."""
    x, mask = torch.ones(3), torch.tensor([1, 0, 1], dtype=torch.uint8)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for _ in range(2):
            x[mask]
        x[mask, None]
        torch.where(mask, x, x)
        torch.add(x, 1, out=torch.ones(1))
    assert [w.filename for w in seen] == [__file__] * 4
