"""Functions of neural networks have cases of their own: `network_cases.py`, `network_calls.txt`."""
import importlib
import pkgutil

from samples import Samples

import flambeau.nn.functional  # noqa: F401  (its dropouts are ops too)
from flambeau.core.op import table

_ops = importlib.import_module("flambeau.ops")      # the attribute is the dispatcher's
for _module in pkgutil.walk_packages(_ops.__path__, "flambeau.ops."):
    importlib.import_module(_module.name)       # also those whose names are looked up late

ROOMS = ("flambeau.ops.nn.", "flambeau.ops.spatial.", "flambeau.ops.loss.")
DRAWS = {"draws", "fills", "sampling", "dropout"}
family = Samples()
for _name, _op in table.items():
    _declared = getattr(_op.declaration, "canonical", None)
    _rules = [_op.vjp, *_op.rules.values()] if _op.declaration is not None else []
    _source = getattr(_op, "body", None) or _declared or _op.parts or next(
        filter(callable, _rules), _op.arguments)
    if _source.__module__.startswith(ROOMS):
        family.untested[_name] = "see network_cases.py"
    elif _source.__module__.rpartition(".")[2] in DRAWS or "dropout" in _name:
        family.untested[_name] = "draws: see test_random.py"
    elif _source.__module__ == "flambeau.ops.python.internal":
        family.untested[_name] = "see test_internal.py"
    elif _source.__module__ == "flambeau.ops.linalg.grouped_products":
        family.untested[_name] = "recorded calls: see tests/nn/scripts/details.txt"
