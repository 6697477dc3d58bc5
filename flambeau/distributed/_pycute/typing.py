"""What counts as a number."""
from abc import ABCMeta


class Integer(metaclass=ABCMeta):      # noqa: B024
    """Integers, and what is registered as such."""


Integer.register(int)
