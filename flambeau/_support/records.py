"""Records of many facts, of which each states few.

A class annotates the names of its facts, and says with each what holds where an instance does not
say it. A dataclass of sixty fields would do, too; but it compiles a constructor, which sets all of
them in each instance, and hundreds are made while flambeau is imported.

>>> class Animal(Record):
...     legs: int = 4
...     sound: str = ""
>>> dog = Animal(sound="woof")
>>> dog.legs, dog.sound, dog.given()
(4, 'woof', {'sound': 'woof'})
"""
from __future__ import annotations

from typing import Any


class Record:
    """Facts by name; the class has the defaults."""

    _names: frozenset[str] = frozenset()

    def __init_subclass__(cls) -> None:
        cls._names = cls._names.union(vars(cls).get("__annotations__", ()))

    def __init__(self, **facts: Any) -> None:
        if not facts.keys() <= self._names:
            unknown = next(name for name in facts if name not in self._names)
            raise TypeError(f"{type(self).__name__} has no fact '{unknown}'")
        self.__dict__.update(facts)

    def given(self) -> dict[str, Any]:
        """The facts that this instance states, those that were set later included."""
        return {name: fact for name, fact in vars(self).items() if name in self._names}
