"""Type checkers accept a program that is right, and find what is wrong in one that is not.

mypy runs in its default mode; pyright, where it is installed, in its mode "basic".
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")
PROGRAM = Path(__file__).with_name("user_program.py")
ROOT = Path(__file__).parents[2]
START = """import flambeau as torch
import flambeau.nn.functional as F
from flambeau import nn, optim
from flambeau.utils.data import DataLoader
x = torch.ones(2, 2)
"""
WRONG = {
    "torch.cat(x)": 'Argument 1 to "cat" has incompatible type "Tensor"',
    "torch.stack(x)": 'Argument 1 to "stack" has incompatible type "Tensor"',
    'x.max(dim="a")': 'No overload variant of "max"',
    "torch.max(x, dim=0) + 1": 'No overload variant of "__add__" of "tuple"',
    "torch.max(x, 1).places": 'has no attribute "places"',
    "x.sort().places": '"sort" has no attribute "places"',
    "torch.linalg.svd(x).Z": '"linalg_svd" has no attribute "Z"',
    'torch.unsqueeze(x, "a")': 'incompatible type "str"; expected "int"',
    "torch.sum(x, axes=0)": 'Unexpected keyword argument "axes"',
    "F.relu(x, inplac=True)": 'Unexpected keyword argument "inplac"',
    "F.cross_entropy(x)": 'Missing positional argument "target"',
    "nn.Linear(3, 4, biass=True)": 'Unexpected keyword argument "biass"',
    'nn.Linear("3", 4)': 'incompatible type "str"; expected "int"',
    'nn.Conv2d(3, 8, "a")': 'incompatible type "str"; expected "int | tuple[int, ...]"',
    "optim.SGD([x], lrr=0.1)": 'Unexpected keyword argument "lrr"',
    "optim.Adam([x], betas=0.9)": 'has incompatible type "float"',
    'DataLoader(torch.utils.data.TensorDataset(x), batch_size="a")': 'has incompatible type "str"',
    "x.nonexistent()": 'has no attribute "nonexistent"',
    "torch.nonexistent": 'has no attribute "nonexistent"',
    "x.backward(retain=True)": 'Unexpected keyword argument "retain"',
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("typing")
    (made / "wrong.py").write_text(START + "\n".join(WRONG) + "\n")
    (made / "user_program.py").write_text(PROGRAM.read_text())
    (made / "mypy.ini").write_text("[mypy]\n")
    (made / "pyrightconfig.json").write_text(
        f'{{"typeCheckingMode": "basic", "extraPaths": ["{ROOT}"]}}')
    return made


@pytest.fixture(scope="module")
def checked(folder):
    """What mypy says, by line."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--follow-imports=silent",
         "user_program.py", "wrong.py"], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def test_the_program_is_accepted(checked):
    assert [line for line in checked if "user_program" in line] == []


def test_the_program_runs():
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, check=False,
                          env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    assert "torch.Size([3])" in done.stdout


@pytest.mark.parametrize("line", WRONG)
def test_mistakes_are_found(checked, line):
    number = START.count("\n") + 1 + [*WRONG].index(line)
    assert any(f"wrong.py:{number}: error" in said and WRONG[line] in said for said in checked), \
        [said for said in checked if f":{number}:" in said]


@pytest.mark.skipif(shutil.which("pyright") is None, reason="pyright is not installed")
def test_pyright(folder):
    done = subprocess.run(["pyright", "--pythonpath", sys.executable, "user_program.py",
                           "wrong.py"], cwd=folder, capture_output=True, text=True, check=False)
    found = re.findall(r"(\w+)\.py:(\d+):\d+ - error", done.stdout)
    assert [place for place in found if place[0] == "user_program"] == [], done.stdout
    lines = {int(line) - START.count("\n") - 1 for _, line in found}
    assert [line for i, line in enumerate(WRONG) if i not in lines] == []
