"""Which modules the modules of a package import."""
import pytest

from flambeau.package._module_graph import _Graph, imported_modules


@pytest.mark.parametrize("source, package, found", [
    ("import a, b.c as d", False, ["a", "b.c"]),
    ("from a import b, c", False, ["a", "a.b", "a.c"]),
    ("from a import *", False, ["a"]),
    ("from . import sub", False, ["top", "top.sub"]),
    ("from . import sub", True, ["top.mod", "top.mod.sub"]),
    ("from ..x import y", True, ["top.x", "top.x.y"]),
    ("def f():\n    import late", False, ["late"]),
    ("x = 1", False, []),
])
def test_imports(source, package, found):
    assert imported_modules("top.mod", source, package) == found


def diamond():
    graph = _Graph()
    for a, b in ("ab", "ac", "bd", "cd", "de", "fe"):
        graph.add(a, b)
    return graph


def test_paths_between():
    assert sorted(diamond().between("a", "d")) == [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    assert diamond().between("a", "f") == []
    with pytest.raises(ValueError, match="The node z is not in the digraph"):
        diamond().between("z", "a")


def test_dot():
    graph = _Graph()
    graph.add("a", "b")
    assert graph.dot() == 'digraph G {\nrankdir = LR;\nnode [shape=box];\n"a" -> "b";\n}\n'
