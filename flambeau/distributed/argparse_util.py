"""Options of programs that the environment can set, too: `--nnodes` by `PET_NNODES`."""
from __future__ import annotations

import os
from argparse import Action, ArgumentParser, Namespace
from typing import Any


def _variable(dest: str) -> str:
    return f"PET_{dest.upper()}"


class env(Action):
    """An option with a value, by default that of the variable `PET_…`.

    >>> import argparse
    >>> parser = argparse.ArgumentParser()
    >>> option = parser.add_argument("--nnodes", action=env, default="1")
    >>> parser.parse_args(["--nnodes", "2"]).nnodes
    '2'
    """

    def __init__(self, dest: str, default: Any = None, required: bool = False, **kwargs: Any):
        default = os.environ.get(_variable(dest), default)
        super().__init__(dest=dest, default=default, required=required and default is None,
                         **kwargs)

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: Any,
                 option_string: str | None = None) -> None:
        setattr(namespace, self.dest, values)


class check_env(Action):
    """A switch, by default on if the variable `PET_…` is 1."""

    def __init__(self, dest: str, default: bool = False, **kwargs: Any):
        default = bool(int(os.environ.get(_variable(dest), default)))
        super().__init__(dest=dest, const=True, default=default, nargs=0, **kwargs)

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: Any,
                 option_string: str | None = None) -> None:
        setattr(namespace, self.dest, self.const)
