"""The names that core reads from above itself."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

import flambeau
from flambeau.core import late_bound

ROOT = Path(flambeau.__file__).parent
OWN = {"HOMES", "TYPE_CHECKING", "annotations", "import_module"}


@pytest.mark.parametrize("name", late_bound.HOMES)
def test_a_name_is_what_its_home_defines(name):
    assert getattr(late_bound, name) is getattr(import_module(late_bound.HOMES[name]), name)


def uses():
    """The modules that read `late_bound.name`, and those that assign to one."""
    for path in ROOT.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "late_bound" in text:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) \
                        and node.value.id == "late_bound":
                    yield ".".join(path.relative_to(ROOT.parent).with_suffix("").parts), node


def test_nothing_else_is_bound():
    assert {n for n in vars(late_bound) if n[0] != "_"} - set(late_bound.HOMES) <= OWN
    assert [where for where, node in uses() if not isinstance(node.ctx, ast.Load)] == []
    with pytest.raises(AttributeError, match="no attribute 'softmax'"):
        late_bound.softmax


def test_the_list_is_no_longer_than_it_must_be():
    """Each name is used, and by modules which its home cannot be imported by."""
    read_by_c = {"div", "geometry", "known_as"}
    found = {node.attr for _, node in uses()} | read_by_c
    assert set(late_bound.HOMES) == found
    assert len(late_bound.HOMES) <= 45
    above = {where for where, _ in uses() if where.split(".")[1] in ("autograd", "func", "nn")}
    assert above == set()
