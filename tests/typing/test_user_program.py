"""Type checkers accept a program that is right, and find what is wrong in one that is not."""
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")
PROGRAM = Path(__file__).with_name("user_program.py")
WRONG = {
    "torch.cat(torch.ones(2))": 'Argument 1 to "cat" has incompatible type "Tensor"',
    'torch.ones(2).max(dim="a")': 'No overload variant of "max"',
    "torch.max(torch.ones(2, 2), 1).places": 'has no attribute "places"',
    'torch.unsqueeze(torch.ones(2), "a")': 'incompatible type "str"; expected "int"',
}


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """What mypy says in its default mode, by line of a file with mistakes; and of the program."""
    folder = tmp_path_factory.mktemp("typing")
    wrong = folder / "wrong.py"
    wrong.write_text("import flambeau as torch\n" + "\n".join(WRONG) + "\n")
    (folder / "mypy.ini").write_text("[mypy]\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--follow-imports=silent",
         PROGRAM, wrong], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def test_the_program_is_accepted(checked):
    assert [line for line in checked if "user_program" in line] == []


@pytest.mark.parametrize("line", WRONG)
def test_mistakes_are_found(checked, line):
    number = 2 + [*WRONG].index(line)
    assert any(f"wrong.py:{number}: error" in said and WRONG[line] in said for said in checked)
