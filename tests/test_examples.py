"""The examples run on flambeau as they run on PyTorch: same losses, results, and resumption."""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from pydoc_data.topics import topics

import pytest

import flambeau

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "examples"
RECORDED = json.loads((HERE / "data" / "examples.json").read_text())


def run(folder, script, *arguments):
    """What `flambeau run examples/…` prints."""
    package = Path(flambeau.__file__).resolve().parent.parent
    environment = {**os.environ, "PYTHONPATH": str(package), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "flambeau", "run", str(EXAMPLES / script), *arguments]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def losses(printed):
    return [float(x) for x in re.findall(r"^step \d+: ([\d.]+)$", printed, re.MULTILINE)]


def skip_unless_the_text_is(recorded):
    """The text that char_gpt.py learns differs between versions of Python."""
    text = "\n".join(topics[name] for name in sorted(topics))
    if hashlib.sha256(text.encode()).hexdigest() != recorded:
        pytest.skip("recorded with the documentation of another version of Python")


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_losses_are_those_of_pytorch(name, tmp_path):
    if name == "digits":
        pytest.importorskip("sklearn")
    else:
        skip_unless_the_text_is(RECORDED[name]["text"])
    found, expected = losses(run(tmp_path, *RECORDED[name]["arguments"])), RECORDED[name]["losses"]
    assert found[:10] == pytest.approx(expected[:10], rel=5e-4)
    # A rectifier at zero falls to one side or the other by how a processor rounds; then it grows.
    assert found == pytest.approx(expected, rel=5e-3)


def test_digits_are_learned(tmp_path):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    printed = run(tmp_path, "digits.py", "--epochs", "4")
    accuracies = [float(x) for x in re.findall(r"^test accuracy ([\d.]+) %", printed, re.MULTILINE)]
    assert len(accuracies) == 4
    assert accuracies[-1] >= 97
    restored = re.search(r"restored from .*: ([\d.]+) %", printed)
    assert float(restored[1]) == max(accuracies)
    assert (tmp_path / "digits/digits.png").read_bytes().startswith(b"\x89PNG")
    assert "output.weight" in flambeau.load(tmp_path / "digits/digits.pt")


def test_an_interrupted_training_goes_on_as_if_it_had_not_been(tmp_path):
    command = ["--steps", "120", "--verbose", "--width", "16", "--heads", "2", "--layers", "1"]
    command += ["--context", "16", "--batch-size", "4", "--sample", "5"]
    whole = losses(run(tmp_path, "char_gpt.py", *command))
    (tmp_path / "char_gpt.pt").unlink()
    # The schedule depends on the number of steps, so the run is cut short, not made shorter.
    saved = "            save(step + 1)\n"
    source = (EXAMPLES / "char_gpt.py").read_text()
    interrupted = tmp_path / "interrupted.py"
    interrupted.write_text(source.replace(saved, f"{saved}            raise SystemExit\n"))
    first = losses(run(tmp_path, str(interrupted), *command))
    rest = run(tmp_path, "char_gpt.py", *command, "--resume")
    assert "resumed after step 100" in rest
    assert first == whole[:100]
    assert losses(rest) == whole[100:]


def test_several_processes_learn_what_one_learns(tmp_path):
    pytest.importorskip("sklearn")
    package = Path(flambeau.__file__).resolve().parent.parent
    environment = {**os.environ, "PYTHONPATH": str(package), "OMP_NUM_THREADS": "1"}
    alone = run(tmp_path, "ddp_digits.py")
    together = subprocess.run(
        [sys.executable, "-m", "flambeau", "run", "--nproc", "2", str(EXAMPLES / "ddp_digits.py")],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert together.returncode == 0, together.stderr
    found = [[float(x) for x in re.findall(r"loss ([\d.]+)", text)]
             for text in (alone, together.stdout)]
    assert len(found[0]) == 3 and found[0][2] < 0.2
    assert found[0] == pytest.approx(found[1], abs=2e-4)
