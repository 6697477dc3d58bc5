"""The package as a whole: what importing it costs, its command, its stubs, its size."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import flambeau

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(flambeau.__file__).resolve().parent.parent
HEAVY = {"scipy", "ml_dtypes", "tqdm", "matplotlib", "sklearn", "torch", "asyncio",
         "multiprocessing", "concurrent", "unittest", "doctest", "sqlite3"}  # fmt: skip


def python(code, folder, **environment):
    """What a fresh interpreter prints."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), **environment}
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_import_brings_nothing_heavy(tmp_path):
    code = """
import sys, numpy
before = set(sys.modules)
import flambeau
print(*(set(sys.modules) - before))
"""
    found = set(python(code, tmp_path).split())
    assert not HEAVY & {name.partition(".")[0] for name in found}
    # what a program may not need comes when it is used
    assert not {"flambeau.nn", "flambeau.optim", "flambeau.distributions"} & found


def test_import_brings_what_most_programs_need(tmp_path):
    """Each module costs its share of a millisecond: those that are there, and no more."""
    code = """
import sys, numpy
before = set(sys.modules)
import flambeau
print(*(set(sys.modules) - before))
"""
    found = set(python(code, tmp_path).split())
    assert not {"dataclasses", "inspect", "typing_extensions"} & found
    rooms = {
        "flambeau.autograd": {"grad_mode"},
        "flambeau.transforms": {"meta", "watched_members"},
        "flambeau.ops": {"coercion", "inplace", "late_methods", "node_names", "out_types",
                         "overlap", "factory", "indexing", "linalg", "pointwise", "python",
                         "reduction", "resizing", "view"},
    }
    for room, wanted in rooms.items():
        inside = {name.split(".")[2] for name in found if name.startswith(f"{room}.")}
        assert inside <= wanted, room
    modules = [name for name in found if name.startswith("flambeau")
               and not (PACKAGE / name.replace(".", "/")).is_dir()]     # rooms hold only words
    assert len(modules) <= 100


def test_import_makes_hardly_any_op(tmp_path):
    """Schemas are parsed, and ops made of them, when they are first needed."""
    made = python("""
import flambeau
from flambeau.core.op import table
declared = {entry.args[0] for entry in table.declared.values() if hasattr(entry, "args")}
print(sum("ops" in vars(declaration) for declaration in declared))
""", tmp_path)
    assert int(made) <= 15


def test_import_takes_less_again_than_numpy_takes(tmp_path):
    """The processor time of this thread, in a fresh interpreter, least of some, after a first."""
    code = """
import time, json
start = time.thread_time()
import numpy
middle = time.thread_time()
import flambeau
print(json.dumps([middle - start, time.thread_time() - middle]))
"""
    cache = {"PYTHONPYCACHEPREFIX": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": ""}
    runs = [json.loads(python(code, tmp_path, **cache)) for _ in range(6)][1:]
    numpy, own = (min(times) for times in zip(*runs))
    assert own < numpy, f"NumPy {1e3 * numpy:.0f} ms, flambeau {1e3 * own:.0f} ms"


def test_missing_modules_are_missing(tmp_path):
    with pytest.raises(ModuleNotFoundError):
        __import__("flambeau.no_such_module")
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = flambeau.no_such_name


def test_kernels_can_be_chosen(tmp_path):
    printed = python("import flambeau.__main__ as m; m.main(['info'])", tmp_path,
                     FLAMBEAU_KERNELS="reference")  # fmt: skip
    assert re.search("^kernels +NumPy, since FLAMBEAU_KERNELS=reference", printed, re.MULTILINE)


def test_an_extension_built_for_another_version_is_left_out(tmp_path):
    printed = python("""
import sys, types
sys.modules["flambeau.kernels._native"] = types.ModuleType("flambeau.kernels._native")
import flambeau, flambeau.__main__
assert flambeau.nn.functional.relu(flambeau.ones(2) - flambeau.arange(2)).tolist() == [1, 0]
flambeau.__main__.main(["info"])
""", tmp_path)
    assert re.search("^kernels +NumPy, since .* another version .* build it again", printed,
                     re.MULTILINE), printed


def test_stubs_are_typed_and_up_to_date(tmp_path):
    assert (Path(flambeau.__file__).parent / "py.typed").exists()
    script = ROOT / "scripts" / "make_stubs.py"
    ran = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    methods = (ROOT / "flambeau/core/methods.pyi").read_text()
    assert "def softmax(self, dim" in methods
    assert "def add_(self, other: Any" in methods


@pytest.mark.parametrize("name", ["README.md", "docs/operations.md", "docs/compatibility.md"])
def test_examples_of_the_documents(name, tmp_path):
    code = f"""
import doctest
found = doctest.testfile({str(ROOT / name)!r}, module_relative=False,
                         optionflags=doctest.NORMALIZE_WHITESPACE)
assert found.attempted and not found.failed
"""
    python(code, tmp_path)
