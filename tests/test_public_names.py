"""What modules export, and that it has docstrings."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

RECORDED = Path(__file__).parent / "data/public_names.json"

# Run in a process of its own, as it imports every module there is.
SURVEY = '''
import contextlib, importlib, inspect, io, json, sys, warnings
warnings.simplefilter("ignore")
import flambeau


def found(module, name):
    try:
        return getattr(module, name)
    except (AttributeError, ImportError, NotImplementedError):
        return found                                # itself: there is no such name


def undocumented(home, name, value):
    if not inspect.getdoc(value):
        yield f"{home}.{name}"
    if inspect.isclass(value):
        for key, member in vars(value).items():
            if key[0] != "_" and (inspect.isfunction(member) or isinstance(
                    member, staticmethod | classmethod | property)):
                if not inspect.getdoc(getattr(value, key)):
                    yield f"{home}.{name}.{key}"


exported, modules, bare, seen = {}, {}, [], set()
for name, names in json.load(open(sys.argv[1])).items():
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            module = importlib.import_module(name.replace("torch", "flambeau", 1))
    except (ImportError, NotImplementedError):      # not offered, or it needs another library
        continue
    there = {each: value for each in names if (value := found(module, each)) is not found}
    modules[module.__name__] = module           # one module here may be several in PyTorch
    exported.setdefault(module.__name__, set()).update(there)
    for each, value in there.items():
        if id(value) not in seen and (inspect.isfunction(value) or inspect.isclass(value)):
            seen.add(id(value))
            bare += undocumented(name, each, value)
differ = {name: sorted(names ^ ours) for name, names in exported.items()
          if not name.startswith("torch.backends.")         # objects
          and (ours := set(getattr(modules[name], "__all__", ()))) != names}
print(json.dumps([len(modules), differ, bare]))
'''


@pytest.fixture(scope="module")
def survey():
    done = subprocess.run([sys.executable, "-c", SURVEY, RECORDED], capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_modules_export_what_pytorch_exports(survey):
    checked, differ, _ = survey
    assert checked > 400 and differ == {}


def test_everything_public_has_a_docstring(survey):
    assert survey[2] == []
