"""Record the losses of the examples on PyTorch: ``python tests/data/record_examples.py``."""

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from pydoc_data.topics import topics

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples"
PROGRAMS = {
    "digits": ["digits.py", "--steps", "20"],
    "char_gpt": ["char_gpt.py", "--steps", "20", "--verbose", "--sample", "40"],
}


def main():
    recorded = {}
    for name, (script, *arguments) in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, str(EXAMPLES / script), *arguments]
            ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        losses = [float(x) for x in re.findall(r"^step \d+: ([\d.]+)$", ran.stdout, re.MULTILINE)]
        recorded[name] = {"arguments": [script, *arguments], "losses": losses}
    text = "\n".join(topics[name] for name in sorted(topics))
    recorded["char_gpt"]["text"] = hashlib.sha256(text.encode()).hexdigest()
    (HERE / "examples.json").write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
