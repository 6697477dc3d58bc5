"""What is known of an op stands in its declaration, and not in tables that are keyed by ops' names.

`TYPES` are the rules by which special kinds of tensors (distributed, masked, nested, quantized,
sparse, …) take whole groups of ops; `WORDS` are modules where ops' names are words of users' own.
Names of ops may stand together also where they are declared, in a loop; where an argument is a word
that is an op's name too (`reduce="amax"`); and where a module lists, or enters by a decorator,
functions of its own: such as decompositions.
"""
import ast
import importlib
import pkgutil
import re
import sys
from pathlib import Path

import flambeau
from flambeau.core.op import public, table
from flambeau.dispatch.python_functions import PythonFunction
from flambeau.ops import load

ROOMS = ("amp", "autograd", "core", "dispatch", "export", "kernels", "masked",
         "nested", "ops", "profiler", "return_types", "schema", "transforms")
TYPES = ("flambeau.ao.", "flambeau.distributed.tensor._ops.", "flambeau.masked.",
         "flambeau.nested.", "flambeau.ops.quantized.", "flambeau.ops.sparse.",
         "flambeau.ops.view.conjugate_views")
WORDS = {
    "flambeau._higher_order_ops.out_dtype": "an error lists what can be given",
    "flambeau.ops.late_methods": "written from declarations, by scripts/make_stubs.py",
    "flambeau._support.lazy.names": "which module a name is imported from",
    "flambeau.nn.init": "names of nonlinearities",
    "flambeau.ops.python.internal": "ops for other devices, declared in a loop",
}
ROOT = Path(flambeau.__file__).parent


def _modules():
    for room in ROOMS:
        found = importlib.import_module(f"flambeau.{room}")
        for module in pkgutil.walk_packages(getattr(found, "__path__", ()), f"flambeau.{room}."):
            importlib.import_module(module.name)
    prefixes = tuple([f"flambeau.{room}" for room in ROOMS])
    return {name: module for name, module in [*sys.modules.items()] if name.startswith(prefixes)}


def _names():
    load()
    return {name.partition(".")[0] for name in table} | {*public["torch"]}


def _are_ops(words, names):
    return len(words) >= 4 and all(isinstance(w, str) and "(" not in w for w in words) and \
        sum(word.partition(".")[0].rstrip("_") in names or word in names for word in words) \
        >= 0.8 * len(words)


def _is_about_ops(value, names):
    """Is it a collection of which nearly all elements, or keys, are ops?"""
    if not isinstance(value, (dict, set, frozenset, list, tuple)):
        return False
    return _are_ops([key if isinstance(key, str) else getattr(key, "__name__", None)
                     if hasattr(key, "twin") else None for key in value], names)


def test_every_op_is_declared():
    load()
    others = [op.name for op in table.values() if op.declaration is None
              and not isinstance(getattr(op.function, "twin", op.function), PythonFunction)]
    assert others == []


def test_no_table_is_keyed_by_ops():
    names = _names()

    def is_functions(value, own):           # the functions themselves, by their names
        return any(value is space for space in (public, *public.values(), table)) or (
            isinstance(value, (list, tuple)) and all(name in vars(own) for name in value)) or (
            isinstance(value, dict) and all(getattr(each, "__module__", "") == own.__name__
                                            for each in value.values()))

    found = {f"{module}.{name}" for module, own in _modules().items()
             if not module.startswith(TYPES) for name, value in vars(own).items()
             if name[:2] != "__" and _is_about_ops(value, names) and not is_functions(value, own)}
    assert sorted(found) == []


class Literals(ast.NodeVisitor):
    """The literals of a module that list ops, but for those that the rules above allow."""

    def __init__(self, path, names, words):
        self.path, self.names, self.words, self.found = path, names, words, []
        tree = ast.parse(path.read_text(encoding="utf-8"))
        self.own = {getattr(node, "name", getattr(node, "id", None)) for node in ast.walk(tree)}
        self.visit(tree)

    def visit_Assign(self, node):
        if getattr(node.targets[0], "id", "") != "__all__":
            self.generic_visit(node)

    def visit_For(self, node):                  # what is declared in a loop
        for part in (node.body if isinstance(node.iter, ast.Tuple) else [node.iter, *node.body]):
            self.visit(part)

    def visit_comprehension(self, node):
        if not isinstance(node.iter, ast.Tuple):
            self.generic_visit(node)

    def visit_Compare(self, node):              # `reduce in ("sum", "mean", "amax", "amin")`
        left = [part.id for part in ast.walk(node.left) if isinstance(part, ast.Name)]
        if not self.words.intersection(left):
            self.generic_visit(node)

    def visit_Match(self, node):
        self.look([case.pattern.value for case in node.cases
                   if isinstance(case.pattern, ast.MatchValue)], node)
        self.generic_visit(node)

    def visit_Constant(self, node):
        if isinstance(node.value, str):
            words = node.value.split()
            if all(word.replace(".", "_").isidentifier() for word in words):
                self.look([ast.Constant(word) for word in words], node)

    def visit_Dict(self, node):
        self.look(node.keys, node)

    def visit_Tuple(self, node):
        self.look(node.elts, node)

    visit_Set = visit_List = visit_Tuple

    def look(self, elements, node):
        words = [getattr(element, "value", None) for element in elements]
        if _are_ops(words, self.names) \
                and not all(word in self.own for word in words):
            self.found.append(f"{self.path.relative_to(ROOT)}:{node.lineno}: {words[:4]}")
        else:
            self.generic_visit(node)


def _may_list(path, names):
    """Are there enough words in quotes that are ops? Most modules need not be parsed."""
    quoted = re.findall(r"[\"']([\w.\s]+)[\"']", path.read_text(encoding="utf-8"))
    return len([word for text in quoted for word in text.split()
                if word.partition(".")[0].rstrip("_") in names or word in names]) >= 4


def test_no_function_has_such_a_table():
    names, found = _names(), []
    words = {parameter.name for op in table.values() if op.schema is not None
             for parameter in op.schema.parameters if parameter.kind == "str"}
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(["flambeau", *path.relative_to(ROOT).with_suffix("").parts])
        if not name.startswith(TYPES) and name not in WORDS and _may_list(path, names):
            found += Literals(path, names, words).found
    assert found == []
