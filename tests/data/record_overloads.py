"""Writes tests/data/overloads.json: schemas of PyTorch's ops with several overloads, and the
signatures that its functions and methods have because of them, in the order in which it tries them.

Run where PyTorch is installed: `python tests/data/record_overloads.py`. The schemas come from the
list that PyTorch ships, the signatures from the errors of calls that fit none.
"""
import json
import re
from collections import defaultdict
from pathlib import Path

import torch
import torchgen

from flambeau.schema.parser import parse

YAML = Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"


def entries():
    """Schema and variants of each entry."""
    found = []
    for line in YAML.read_text().splitlines():
        if line.startswith("- func: "):
            found.append([line[8:].strip(), "function"])
        elif line.startswith("  variants: "):
            found[-1][1] = line[12:].partition("#")[0].strip()
    return found


def arguments(schema):
    return [(p.name, p.kind, p.size) for p in schema.parameters
            if not p.is_out and p.name not in ("dtype", "layout", "device", "pin_memory")]


def signatures(function):
    """Those that the error of a call lists."""
    try:
        function(*[None] * 20)
    except TypeError as error:
        return re.findall(r"^ \* (\(.*\))$", str(error), re.M)
    except Exception:           # of a function that takes anything
        return []
    return []


def main():
    groups = defaultdict(list)
    for text, variants in entries():
        groups[parse(text).name].append((text, variants))
    recorded = {}
    for name, members in sorted(groups.items()):
        outs = [text for text, _ in members if parse(text).outs]
        rows = []
        for text, variants in members:
            schema = parse(text)
            if schema.outs or (schema.overload == "Scalar"              # numbers pass as tensors
                               and re.fullmatch("(add|sub|mul|div)_?", name)):
                continue
            out = next((o for o in outs if arguments(parse(o)) == arguments(schema)), None)
            rows.append([text, out, variants])
        if len(rows) < 2 or name[0] == "_":
            continue
        known = [signatures(getattr(owner, name, dict)) for owner in (torch, torch.ones(()))]
        if any(known):
            recorded[name] = [rows, *known]
    path = Path(__file__).with_name("overloads.json")
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in recorded.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
