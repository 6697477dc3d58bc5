"""What is known of an op stands in its declaration, and not in tables that are keyed by ops' names.

`TYPES` are the rules by which special kinds of tensors (masked, nested, quantized, sparse, …) take
whole groups of ops. `WAITING` has the tables that are still to move into declarations; it only gets
shorter.
"""
import importlib
import pkgutil
import sys

from flambeau.core.op import public, table
from flambeau.dispatch.python_functions import PythonFunction
from flambeau.ops import load

ROOMS = ("_dispatch", "amp", "autograd", "core", "dispatch", "export", "kernels", "masked",
         "nested", "ops", "profiler", "schema", "transforms")
TYPES = ("flambeau.masked.", "flambeau.nested.", "flambeau.ops.quantized.", "flambeau.ops.sparse.",
         "flambeau.ops.view.conjugate_views.")
WAITING = """
    export._overloads._PUBLIC
""".split()


def _modules():
    for room in ROOMS:
        found = importlib.import_module(f"flambeau.{room}")
        for module in pkgutil.walk_packages(getattr(found, "__path__", ()), f"flambeau.{room}."):
            importlib.import_module(module.name)
    prefixes = tuple([f"flambeau.{room}" for room in ROOMS])
    return {name: module for name, module in [*sys.modules.items()] if name.startswith(prefixes)}


def _is_about_ops(value, names):
    """Is it a dictionary or a set of which nearly all keys are ops?"""
    if not isinstance(value, (dict, set, frozenset)) or len(value) < 4 \
            or not all(isinstance(key, str) for key in value):
        return False
    return sum(key in names or key.rstrip("_") in names for key in value) >= 0.8 * len(value)


def test_every_op_is_declared():
    load()
    others = [op.name for op in table.values() if op.declaration is None
              and not isinstance(getattr(op.function, "twin", op.function), PythonFunction)]
    assert others == []


def test_no_table_is_keyed_by_ops():
    load()
    modules = _modules()
    names = {name.partition(".")[0] for name in table} | {*public["torch"]}

    def is_functions(value):                # the functions themselves, by their names
        return any(value is space for space in (public, *public.values()))

    found = {f"{module}.{name}" for module, own in modules.items()
             for name, value in vars(own).items() if name[:2] != "__" and not is_functions(value)
             and value is not table and _is_about_ops(value, names)}
    found = {name.removeprefix("flambeau.") for name in found if not name.startswith(TYPES)}
    assert sorted(found - {*WAITING}) == []
    assert sorted({*WAITING} - found) == []
