"""What wrong calls of typed storages' constructors are told."""

import pytest

import flambeau as torch

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
untyped = torch.UntypedStorage(8)


@pytest.mark.parametrize("call, error, message", [
    (lambda: torch.FloatStorage(3, 4), RuntimeError, "Too many positional arguments"),
    (lambda: torch.FloatStorage(dtype=torch.float32), RuntimeError,
     "Keyword argument 'dtype' cannot be specified"),
    (lambda: torch.FloatStorage(device="cpu"), RuntimeError,
     "Keyword argument 'device' cannot be specified"),
    (lambda: torch.FloatStorage(1, wrap_storage=untyped), RuntimeError,
     "No positional arguments should be given when using 'wrap_storage'"),
    (lambda: torch.FloatStorage(wrap_storage=3), TypeError,
     "Argument 'wrap_storage' must be UntypedStorage"),
    (lambda: torch.FloatStorage(torch.ones(2)), TypeError, "Argument type not recognized"),
    (lambda: torch.FloatStorage(1.5), TypeError, "Argument type not recognized"),
    (lambda: torch.TypedStorage(wrap_storage=untyped), RuntimeError,
     "Argument 'dtype' must be specified"),
    (lambda: torch.TypedStorage(wrap_storage=untyped, dtype="float"), TypeError,
     "Argument 'dtype' must be torch.dtype"),
    (lambda: torch.TypedStorage(wrap_storage=untyped, dtype=torch.int8, device="cpu"), RuntimeError,
     "Argument 'device' should not be specified when 'wrap_storage' is given"),
])
def test_wrong_calls(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_forms_that_are_right_are_listed():
    with pytest.raises(RuntimeError) as caught:
        torch.TypedStorage(1, 2, dtype=torch.int8)
    said = str(caught.value)
    assert said.splitlines()[1:4] == [
        " * (*, torch.device device, torch.dtype dtype)",
        " * (int size, *, torch.device device, torch.dtype dtype)",
        " * (Sequence data, *, torch.device device, torch.dtype dtype)"]


def test_right_calls():
    assert torch.FloatStorage().tolist() == [] and len(torch.FloatStorage(3)) == 3
    assert torch.FloatStorage([1, 2]).tolist() == [1.0, 2.0]
    assert torch.TypedStorage([1, 2], dtype=torch.int16).tolist() == [1, 2]
    assert len(torch.TypedStorage(wrap_storage=untyped, dtype=torch.int32)) == 2
