"""Writes signatures.json: those of PyTorch's public functions, classes and their main methods."""
import importlib
import inspect
import json
import sys
from pathlib import Path

here = Path(__file__).parent
sys.path.insert(0, str(here.parent / "signatures"))
import signatures
import torch  # noqa: F401

own, seen = {}, set()
for module in signatures.MODULES:
    space = importlib.import_module(module)
    own[module] = []
    for name in dir(space):
        value = getattr(space, name, None)
        home = getattr(value, "__module__", None) or ""
        if name.startswith("_") or not callable(value) or not home.startswith("torch") \
                or id(value) in seen or not signatures.text_of(value):
            continue
        seen.add(id(value))
        own[module].append(name)
        if inspect.isclass(value):
            own[module] += [f"{name}.{m}" for m in signatures.METHODS
                            if any(m in vars(c) for c in value.__mro__[:3])]
found = signatures.signatures(own)
(here / "signatures.json").write_text(json.dumps(found, indent=0) + "\n")
