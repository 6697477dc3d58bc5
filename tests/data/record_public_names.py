"""Records what each public module of PyTorch exports (`__all__`) into public_names.json.

    python tests/data/record_public_names.py        # where PyTorch is installed
"""

import contextlib
import importlib
import io
import json
import pkgutil
import warnings
from pathlib import Path

import torch

# Not offered, or no part of what programs import: tests, compilers, tools of the build.
LEFT_OUT = ("torch.testing._internal", "torch.utils.benchmark.examples", "torch.utils.viz",
            "torch.utils.hipify", "torch.fx.passes.tests")


def modules():
    for found in pkgutil.walk_packages(torch.__path__, "torch.", onerror=lambda name: None):
        private = any(part.startswith("_") for part in found.name.split("."))
        if not private and not found.name.startswith(LEFT_OUT):
            yield found.name


def main():
    exported = {}
    for name in modules():
        with contextlib.suppress(BaseException), contextlib.redirect_stdout(io.StringIO()):
            module = importlib.import_module(name)
            if isinstance(getattr(module, "__all__", None), list | tuple):
                exported[name] = sorted(set(map(str, module.__all__)))
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(names)}"
                       for name, names in sorted(exported.items()))
    Path(__file__).with_name("public_names.json").write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
