"""What the README, CONTRIBUTING and the pages of docs/ name is there."""
import re
from pathlib import Path

import pytest

import flambeau

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
READERS_OWN = {"digits/digits.pt", "digits/digits.png", "script.py", "train.py"}
HOMES = ("", "flambeau", "flambeau/ops", "csrc", "docs")


def named(text):
    """Paths in backticks, in the lines of commands, and in links."""
    commands = re.findall(r"^    \S.*$", text, re.M)
    words = [w for quoted in re.findall(r"`([^`\n]+)`", text) for w in quoted.split()]
    words += [w for line in commands for w in line.split()]
    words += [w.partition("#")[0] for w in re.findall(r"\]\(([^)\s]+)\)", text)]
    for word in words:
        word = word.lstrip("('\"").rstrip("),.;:'\"")
        if re.fullmatch(r"\.?[\w*.-]+(/[\w*.-]+)*/?", word) and (
                "/" in word or word.endswith((".py", ".md", ".txt"))):
            yield word


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_are_there(page):
    missing = [name for name in {*named(page.read_text(encoding="utf-8"))} - READERS_OWN
               if not any(next((ROOT / home).glob(f"{name.rstrip('/')}{ending}"), None)
                          for home in HOMES for ending in ("", ".py"))]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_of_the_package_are_there(page):
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"`flambeau\.([\w.]+)`", text):
        found = flambeau
        for part in name.split("."):
            found = getattr(found, part, None)
        assert found is not None, name


def test_the_folders_of_the_package_that_the_readme_lists_are_all_that_compute():
    rows = re.findall(r"^\| `flambeau/(\w+)/`", (ROOT / "README.md").read_text(encoding="utf-8"),
                      re.M)
    assert {"core", "schema", "dispatch", "ops", "transforms", "kernels", "nn"} == set(rows)
