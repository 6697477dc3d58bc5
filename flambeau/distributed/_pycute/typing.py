"""What counts as a number."""
from __future__ import annotations

from abc import ABCMeta


class Integer(metaclass=ABCMeta):      # noqa: B024
    """Integers; truths are none.

    >>> isinstance(3, Integer), isinstance(True, Integer)
    (True, False)
    """

    @classmethod
    def __subclasshook__(cls, c: type) -> bool:
        return c is not bool and issubclass(c, int)
