"""The distribution `torch` of packaging/torch: `import torch` is flambeau, in children too."""
import os
import shutil
import subprocess
import sys
import textwrap
import tomllib
import zipfile
from importlib.metadata import distributions
from pathlib import Path

import pytest

import flambeau

SOURCE = Path(__file__).resolve().parent.parent / "packaging" / "torch"
PACKAGE = Path(flambeau.__file__).resolve().parent


def python(*arguments, cwd, path=SOURCE, **environment):
    """A program in a process of its own, which has the package on its path."""
    path = os.pathsep.join([str(path), str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": path, **environment})


def run(program, cwd, **environment):
    script = cwd / "program.py"
    script.write_text(textwrap.dedent(program))
    done = python(str(script), cwd=cwd, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("first", ["torch", "functorch", "torch.nn.functional", "flambeau"])
def test_modules_are_those_of_flambeau(first, tmp_path):
    run(f"""
        import {first}
        import functorch, torch, torch.nn.functional as F
        from torch.utils.data import DataLoader
        import flambeau
        assert torch is flambeau and F is flambeau.nn.functional
        assert functorch is flambeau.functorch
        assert DataLoader is flambeau.utils.data.DataLoader
        assert torch.__version__ == "2.13.0+flambeau"
        import importlib.metadata, pickle
        assert importlib.metadata.version("torch") == torch.__version__
        module = pickle.loads(pickle.dumps(torch.nn.Linear(2, 3)))
        assert pickle.loads(b"ctorch.nn.modules.linear\\nLinear\\n.") is type(module)
    """, tmp_path)


def test_modules_are_found_before_any_is_imported(tmp_path):
    run("""
        from importlib.util import find_spec
        assert find_spec("torch") is not None
        assert find_spec("torch.nn.modules") is not None
        assert find_spec("torch.no_such_module") is None
    """, tmp_path)
    done = python("-m", "torch.version", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


CHILDREN = """
    import subprocess, sys
    import multiprocessing
    import torch

    def double(x):
        return torch.nn.functional.relu(x) * 2

    if __name__ == "__main__":
        x = torch.ones(1)
        print(subprocess.run([sys.executable, "-c", "import torch; print(torch.ones(1).item())"],
                             capture_output=True, text=True, check=True).stdout)
        for method in ("spawn", "forkserver"):
            with multiprocessing.get_context(method).Pool(1) as pool:
                assert pool.apply(double, (x,)).item() == 2
"""


def test_children_have_it_too(tmp_path):
    assert run(CHILDREN, tmp_path) == "1.0\n\n"


def test_children_of_joblib_have_it_too(tmp_path):
    pytest.importorskip("joblib")
    run("""
        import joblib, torch
        double = lambda x: torch.nn.functional.relu(x) * 2
        found = joblib.Parallel(2)(joblib.delayed(double)(torch.full((1,), float(i)))
                                   for i in range(4))
        assert [x.item() for x in found] == [0, 2, 4, 6]
    """, tmp_path)


def test_what_is_left_of_pytorch_is_found(tmp_path):
    shutil.copytree(SOURCE / "torch", tmp_path / "torch")
    (tmp_path / "torch" / "_C.cpython-311-x86_64-linux-gnu.so").touch()
    done = python("-c", "import torch", cwd=tmp_path, path=tmp_path)
    assert "belongs to PyTorch, over which flambeau's torch was installed" in done.stderr


def test_versions_agree():
    project = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
    assert project["version"] == flambeau.__version__
    found, = distributions(name="torch", path=[str(PACKAGE / "_alias")])
    assert found.version == flambeau.__version__


def build(folder, **environment):
    code = "import backend, os; print(backend.build_wheel(os.environ['WHEELS']))"
    shutil.copytree(SOURCE, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    return python("-c", code, cwd=folder / "source", WHEELS=str(folder), **environment)


def test_the_wheel_is_built(tmp_path):
    pytest.importorskip("scikit_build_core")
    done = build(tmp_path)
    assert done.returncode == 0, done.stderr
    name = done.stdout.split()[-1]
    assert name == "torch-2.13.0+flambeau-py3-none-any.whl"
    names = {n for n in zipfile.ZipFile(tmp_path / name).namelist() if "dist-info" not in n}
    assert names == {"torch/__init__.py", "functorch/__init__.py"}


def test_it_is_not_built_where_pytorch_is_installed(tmp_path):
    pytest.importorskip("scikit_build_core")
    installed = tmp_path / "venv" / "lib" / "python3.11" / "site-packages"
    metadata = installed / "torch-2.12.1+cpu.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.12.1+cpu\n")
    done = build(tmp_path, VIRTUAL_ENV=str(tmp_path / "venv"))
    assert done.returncode == 1
    assert done.stderr.startswith(f"PyTorch 2.12.1+cpu is installed in {installed}")
    assert "pip uninstall torch" in done.stderr
