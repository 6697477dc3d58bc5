"""Writes signatures.json: those of PyTorch's public functions, classes and their own methods."""
import importlib
import inspect
import json
import sys
from pathlib import Path

here = Path(__file__).parent
sys.path.insert(0, str(here.parent / "signatures"))
import signatures

own, seen = {}, set()
for module in signatures.modules():
    try:
        space = importlib.import_module(module)
    except Exception:                               # something else has to be installed for it
        continue
    names = []
    for name in dir(space):
        value = getattr(space, name, None)
        home = getattr(value, "__module__", None) or ""
        if name.startswith("_") or not callable(value) or not home.startswith("torch") \
                or id(value) in seen or not signatures.text_of(value):
            continue
        seen.add(id(value))
        names.append(name)
        if inspect.isclass(value):
            names += [f"{name}.{method}" for method in signatures.methods(value)]
    if names:
        own[module] = names
found = signatures.signatures(own)
(here / "signatures.json").write_text(json.dumps(found, indent=0) + "\n")
