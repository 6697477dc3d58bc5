"""What is declared of an op stands in its declaration: a table that is keyed by ops' names has no
row of an op that is declared by its schema, and none of an op that is gone.

`WAITING` has the rows that are still to move into declarations; it only gets shorter.
"""
from pathlib import Path

import pytest

import flambeau
from flambeau._dispatch import common_forms, forms
from flambeau.core.op import public, table
from flambeau.dispatch.function import Function
from flambeau.ops import load, out_types, overlap
from flambeau.ops.misfit import c_name
from flambeau.schema import recorded

assert common_forms                         # whose rows are in `forms`

WAITING = {
    "ops/out_types.py": "",
    "ops/overlap.py": "",
    "_dispatch": """real_view imag_view sigmoid tanh transpose reshape_alias addmm linear mm""",
}


@pytest.fixture(scope="module", autouse=True)
def _all_families():
    load()


def _old():
    """The names of ops without a declaration."""
    return {op.name for op in table.values() if op.declaration is None}


def _full_names(declared):
    return {out_types._full_name(op) for op in table.values()
            if (op.declaration is not None) is declared}


def _rows_of_others(rows, names):
    return {name for name in rows if name not in names}


@pytest.mark.parametrize("module", WAITING)
def test_declared_ops_have_no_rows(module):
    if module == "ops/overlap.py":
        found = _rows_of_others(overlap._BY_INDEX | overlap._BY_ELEMENT | overlap._ANYWHERE,
                                _old())
    elif module == "ops/out_types.py":
        rows = {*out_types._SPEAKERS}
        found = _rows_of_others(rows, _full_names(False))
    else:
        found = _rows_of_others(forms.forms.keys() | forms.others.keys(),
                                {forms.key(op) for op in table.values() if op.declaration is None})
    assert sorted(found - {*WAITING[module].split()}) == []


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

