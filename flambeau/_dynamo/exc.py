"""The errors that capturing a program may raise."""
from __future__ import annotations


class TorchDynamoException(RuntimeError):
    """A program could not be captured."""


class UserError(TorchDynamoException):
    """What is wrong with the arguments of `export`, or with the program."""


__all__ = ["TorchDynamoException", "UserError"]
