"""What is declared of an op stands in its declaration: a table that is keyed by ops' names has no
row of an op that is declared by its schema, and none of an op that is gone.
"""
from pathlib import Path

import pytest

import flambeau
from flambeau.core.op import public, table
from flambeau.dispatch.function import Function
from flambeau.ops import load
from flambeau.ops.misfit import c_name
from flambeau.schema import recorded


@pytest.fixture(scope="module", autouse=True)
def _all_families():
    load()


def _is_declared(function):
    return isinstance(getattr(function, "twin", function), Function)


def test_recorded_signatures_are_those_of_other_functions():
    functions = {name for op in table.values() if op.declaration is None
                 for name in (op.name, c_name(op))}
    for space, own in public.items():
        prefix = f"{space}_" if space in ("linalg", "fft", "special") else ""
        functions |= {prefix + name for name, f in own.items() if not _is_declared(f)}
    methods = {name for name, f in vars(flambeau.Tensor).items() if not _is_declared(f)}
    handed_on = Path(recorded.__file__).parents[1].joinpath("ops/forwarding.py").read_text()

    def is_asked_for(line):
        name = line.strip(".:")
        return name in functions | methods or "upsample" in name \
            or name.rstrip("_") in handed_on or name == "new"

    bare, layers, lines = recorded._texts()
    assert [line for line in (*bare, *layers, *lines) if not is_asked_for(line)] == []

