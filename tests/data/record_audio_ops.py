"""Record what torchaudio's compiled ops give: ``python record_audio_ops.py`` with torchaudio.

Writes audio_ops.json: for each expression its values, or what it raises.
"""

import json
import sys
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "_extensions"))
from audio_cases import CALLS, evaluate, inputs


def main():
    import torchaudio  # noqa: F401 - registers the ops
    recorded = {call: evaluate(torch, call, inputs(torch)) for call in CALLS}
    lines = (f"{json.dumps(call)}: {json.dumps(found)}" for call, found in recorded.items())
    (HERE / "audio_ops.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
