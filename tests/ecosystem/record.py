"""Record what programs print with PyTorch: `python tests/ecosystem/record.py [NAME …]`.

It runs them by the interpreter that runs it, which has PyTorch 2.13 and the packages. Without names
it records those that have no record yet.
"""

import json
import sys
import tempfile
from importlib.metadata import packages_distributions, version
from pathlib import Path

from programs import PROGRAMS

COLUMNS = 100


def main(names: list[str]) -> None:
    for name in names or [n for n, p in PROGRAMS.items() if not p.recorded.exists()]:
        program = PROGRAMS[name]
        with tempfile.TemporaryDirectory() as folder:
            printed = program.run(Path(folder))
        distributions = packages_distributions()
        versions = {module: version(distributions[module][0])
                    for module in ["torch", *program.needs]}
        program.recorded.write_text(
            json.dumps({"versions": versions, "printed": printed}, indent=1) + "\n")
        print(name, json.dumps(printed)[:COLUMNS])


if __name__ == "__main__":
    main(sys.argv[1:])
