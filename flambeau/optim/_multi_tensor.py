"""The optimisers with `foreach=True`."""

from __future__ import annotations

from functools import partialmethod
from typing import Any

from flambeau import optim

_NAMES = ("ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop",
          "Rprop", "SGD")


def partialclass(cls, *args: Any, **kwargs: Any) -> type:
    """A subclass some of whose arguments are given."""
    return type(cls.__name__, (cls,), {
        "__init__": partialmethod(cls.__init__, *args, **kwargs), "__doc__": cls.__doc__})


globals().update({name: partialclass(getattr(optim, name), foreach=True) for name in _NAMES})
