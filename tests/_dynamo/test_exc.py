"""Errors of capturing a program."""
import pytest

from flambeau._dynamo import exc


@pytest.mark.parametrize("name", ["UserError"])
def test_they_are_of_one_kind(name):
    assert issubclass(getattr(exc, name), exc.TorchDynamoException)
    assert issubclass(exc.TorchDynamoException, RuntimeError)
