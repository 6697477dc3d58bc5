import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def execute(*arguments, cwd, input=None):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, *map(str, arguments)], cwd=cwd, env=environment,
                          capture_output=True, text=True, input=input, timeout=60)


def flambeau(*arguments, cwd):
    return execute("-m", "flambeau", *arguments, cwd=cwd)


def write(path, program):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(program))
    return path


def both(folder, *arguments):
    """The results of `flambeau run ARGUMENTS` and of `python ARGUMENTS`."""
    ours, pythons = flambeau("run", *arguments, cwd=folder), execute(*arguments, cwd=folder)
    return ((ours.returncode, ours.stdout, ours.stderr),
            (pythons.returncode, pythons.stdout, pythons.stderr))


SURROUNDINGS = """
    import sys, os
    import helper
    import __main__
    print(sys.argv, sys.path[0], __name__, __file__, __spec__ and __spec__.name, __package__)
    print(type(__builtins__), __annotations__, type(__loader__).__name__, __doc__, helper.x)
    print(__main__.__dict__ is globals(), sorted(globals()), sys.modules["__main__"] is __main__)
"""


def test_script_sees_what_python_shows_it(tmp_path):
    write(tmp_path / "sub" / "script.py", SURROUNDINGS)
    write(tmp_path / "sub" / "helper.py", "x = 1")
    ours, pythons = both(tmp_path, "sub/script.py", "--flag", "-m", "x y")
    assert pythons[0] == 0
    assert ours == pythons


def test_module_and_folder_see_what_python_shows_them(tmp_path):
    write(tmp_path / "package" / "__init__.py", "")
    write(tmp_path / "package" / "tool.py", SURROUNDINGS)
    write(tmp_path / "helper.py", "x = 1")
    ours, pythons = both(tmp_path, "-m", "package.tool", "a", "-b")
    assert pythons[0] == 0
    assert ours == pythons
    write(tmp_path / "folder" / "__main__.py", SURROUNDINGS)
    write(tmp_path / "folder" / "helper.py", "x = 1")
    ours, pythons = both(tmp_path, "folder", "a")
    assert pythons[0] == 0
    assert ours == pythons
    shutil.make_archive(tmp_path / "archive", "zip", tmp_path / "folder")
    ours, pythons = both(tmp_path, "archive.zip", "a")
    assert pythons[0] == 0
    assert ours == pythons


@pytest.mark.parametrize("program", [
    "def f(x):\n    return 1 / x\nf(0)\n",
    "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('two') from e\n",
    "def f(:\n    pass\n",
    "import sys\nsys.exit(3)\n",
    "import sys\nsys.exit('a message')\n",
    "raise SystemExit\n",
    "import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__, a[2].tb_lineno)\n1 / 0\n",
    "import atexit\natexit.register(print, 'bye')\nraise RuntimeError('x')\n",
    "raise ExceptionGroup('many', [ValueError(1), TypeError(2)])\n",
    "import warnings\nwarnings.warn('old', DeprecationWarning)\n",
    "import threading\nt = threading.Thread(target=lambda: print('thread'))\nt.start()\n",
    "import does_not_exist\n",
])
def test_ends_as_in_python(tmp_path, program):
    write(tmp_path / "script.py", "")
    (tmp_path / "script.py").write_text(program)
    ours, pythons = both(tmp_path, "script.py")
    assert ours == pythons
    ours, pythons = both(tmp_path, "-m", "script")
    assert ours == pythons


def test_interrupt(tmp_path):
    write(tmp_path / "script.py", """
        import os, signal
        os.kill(os.getpid(), signal.SIGINT)
        import time
        time.sleep(10)
    """)
    ours, pythons = both(tmp_path, "script.py")
    assert ours == pythons
    assert ours[0] == -signal.SIGINT


def test_torch_is_flambeau_in_the_program(tmp_path):
    write(tmp_path / "script.py", """
        import torch
        import torch.nn.functional as F
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        F.relu(x).sum().backward()
        print(torch.__file__, x.grad)
    """)
    done = flambeau("run", "script.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{ROOT / 'flambeau' / '__init__.py'} tensor([1., 1.])\n"


def test_pickling_and_spawned_processes(tmp_path):
    write(tmp_path / "script.py", """
        import multiprocessing, pickle
        import torch

        class Point:
            def __init__(self, x):
                self.x = x

        def double(point, queue):
            queue.put(Point(torch.ones(1).item() + point.x))

        if __name__ == "__main__":
            assert type(pickle.loads(pickle.dumps(Point(1)))) is Point
            spawn = multiprocessing.get_context("spawn")
            queue = spawn.Queue()
            process = spawn.Process(target=double, args=(Point(1), queue))
            process.start()
            print(queue.get(timeout=30).x)
            process.join()
    """)
    done = flambeau("run", "script.py", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("2.0\n", "")


def test_programs_that_the_program_starts_have_torch(tmp_path):
    write(tmp_path / "child.py", """
        from importlib.metadata import version
        assert version("torch") == "2.13.0+flambeau"
        import torch, functorch
        print(torch.ones(1).item(), functorch.vmap is torch.vmap)
    """)
    write(tmp_path / "script.py", """
        import subprocess, sys
        subprocess.run([sys.executable, "child.py"], check=True)
    """)
    done = flambeau("run", "script.py", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("1.0 True\n", "")


def test_other_interpreters_keep_their_own_torch(tmp_path):
    write(tmp_path / "torch.py", "print('of the other')")
    write(tmp_path / "script.py", f"""
        import os, subprocess, sys
        alias = os.environ["PYTHONPATH"].split(os.pathsep)[0]
        environment = {{"PYTHONPATH": alias + os.pathsep + {str(tmp_path)!r}}}
        subprocess.run([sys.executable, "-S", "-P", "-c", "import torch"], check=True,
                       env=environment, cwd="/")
    """)
    done = flambeau("run", "script.py", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("of the other\n", "")


def test_what_cannot_be_run(tmp_path):
    done = flambeau("run", "missing.py", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (f"flambeau: can't open file {str(tmp_path / 'missing.py')!r}: "
                           "[Errno 2] No such file or directory\n")
    ours, pythons = both(tmp_path, "-m", "missing")
    assert ours == pythons


@pytest.mark.parametrize("arguments, message", [
    ([], "a command is needed"),
    (["frobnicate"], "unknown command 'frobnicate'"),
    (["run"], "run: a script to run is needed"),
    (["run", "-m"], "run: a module to run is needed"),
    (["run", "-x", "a.py"], "run: unknown option -x"),
    (["info", "now"], "info takes no arguments, but got now"),
])
def test_usage_errors(tmp_path, arguments, message):
    done = flambeau(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("usage: flambeau run SCRIPT")
    assert done.stderr.endswith(f"flambeau: error: {message}\n")


def test_help_version_and_info(tmp_path):
    assert flambeau("--help", cwd=tmp_path).stdout.startswith("usage: flambeau run SCRIPT")
    assert flambeau("--version", cwd=tmp_path).stdout.startswith("flambeau ")
    done = flambeau("info", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = [line.split()[0] for line in done.stdout.splitlines()]
    for name in ("flambeau", "interface", "Python", "NumPy", "BLAS", "kernels", "threads"):
        assert name in names


def test_many_processes(tmp_path):
    (tmp_path / "script.py").write_text(
        "import os, sys, torch\n"
        "print(torch.add(1, int(os.environ['RANK'])).item(), sys.argv[1:])\n")
    done = flambeau("run", "--nproc", "2", "--tee", "1", "script.py", "--nproc", "x", cwd=tmp_path)
    assert sorted(done.stdout.splitlines()) == [
        "[default0]:1 ['--nproc', 'x']", "[default1]:2 ['--nproc', 'x']"], done.stderr
    assert flambeau("run", "--help", cwd=tmp_path).stdout.startswith("usage: flambeau run [-h]")
