"""The command ``flambeau``: run programs written for PyTorch, and tell about the installation.

    flambeau run script.py ARGS...       like `python script.py ARGS...`, with torch = flambeau
    flambeau run -m package.module ARGS...
    flambeau run --nproc N script.py ARGS...     in N processes, like `torchrun`
    flambeau info
    flambeau --version
"""

from __future__ import annotations

import io
import os
import sys
from types import CodeType, ModuleType, TracebackType
from typing import Any, NoReturn

USAGE = """\
usage: flambeau run SCRIPT [ARGUMENT ...]
       flambeau run -m MODULE [ARGUMENT ...]
       flambeau run --nproc N [OPTION ...] SCRIPT [ARGUMENT ...]
       flambeau info
       flambeau --version

run     run a Python program; `import torch` in it gives flambeau. --nproc N runs it in N processes
        of a group, and takes the options of torchrun: see `flambeau run --help`
info    show the versions and kernels in use
"""


def main(arguments: list[str] | None = None) -> int | None:
    """The entry point of the ``flambeau`` command; returns the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    command = arguments[0] if arguments else None
    rest = arguments[1:]
    if command == "run":
        return _run(rest)
    if command in ("info", "--version", "-V", "--help", "-h", "help"):
        if rest:
            _fail(f"{command} takes no arguments, but got {' '.join(rest)}")
        print(_info() if command == "info" else _version() if "V" in command.upper() else USAGE)
        return 0
    _fail("a command is needed" if command is None else f"unknown command {command!r}")


def _fail(message: str) -> NoReturn:
    print(f"{USAGE}\nflambeau: error: {message}", file=sys.stderr)
    raise SystemExit(2)


# Running a program --------------------------------------------------------------------------


def _run(arguments: list[str]) -> None:
    as_module = arguments[:1] == ["-m"]
    if as_module:
        arguments = arguments[1:]
    if not arguments:
        _fail(f"run: a {'module' if as_module else 'script'} to run is needed")
    if not as_module and arguments[0].startswith("--"):
        return _run_processes(arguments)
    if not as_module and arguments[0].startswith("-"):
        _fail(f"run: unknown option {arguments[0]}")
    import flambeau.as_torch  # noqa: F401 - imported for what it does

    _alias_in_commands()
    main_module = ModuleType("__main__")
    main_module.__dict__.update(__annotations__={}, __builtins__=__builtins__)
    sys.modules["__main__"] = sys.modules["__mp_main__"] = main_module  # multiprocessing's name
    sys.argv[:] = arguments
    try:
        if as_module:
            _run_module(arguments[0])
        else:
            _run_script(arguments[0], main_module)
    except BaseException:
        sys.excepthook = _without_our_frames(sys.excepthook)
        raise


def _run_processes(arguments: list[str]) -> None:
    """Run a program in many processes, as `torchrun` does."""
    from flambeau.distributed.elastic.multiprocessing.errors import record
    from flambeau.distributed.run import get_args_parser, run

    parser = get_args_parser()
    parser.prog = "flambeau run"
    options = parser.parse_args(arguments)
    _alias_in_commands()
    record(run)(options)


def _run_module(name: str) -> None:
    import runpy

    if not sys.flags.safe_path:
        sys.path[0] = os.getcwd()
    sys.argv[0] = "-m"
    vars(runpy)["_run_module_as_main"](name)  # what `python -m name` itself calls


def _run_script(path: str, main_module: ModuleType) -> None:
    from pkgutil import get_importer

    if get_importer(path) is not None:
        return _run_folder(path)
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    path = os.path.join(os.getcwd(), path)
    code = _compile(path)
    from importlib.machinery import SourceFileLoader

    main_module.__file__ = path
    vars(main_module)["__cached__"] = None
    main_module.__loader__ = SourceFileLoader("__main__", path)
    exec(code, main_module.__dict__)


def _run_folder(path: str) -> None:
    """Run the `__main__.py` in a folder or zip file."""
    import runpy

    sys.path[0] = os.path.join(os.getcwd(), path)
    # what `python folder` itself calls
    vars(runpy)["_run_module_as_main"]("__main__", alter_argv=False)


def _compile(path: str) -> CodeType:
    try:
        with io.open_code(path) as file:
            source = file.read()
    except OSError as error:
        reason = f"[Errno {error.errno}] {error.strerror}"
        print(f"flambeau: can't open file {path!r}: {reason}", file=sys.stderr)
        raise SystemExit(2) from None
    return compile(source, path, "exec", dont_inherit=True)


def _without_our_frames(hook: Any) -> Any:
    """An excepthook that shows a traceback as if the program had been started by `python`."""

    def excepthook(kind: type, error: BaseException, traceback: TracebackType | None) -> None:
        last = traceback
        while last is not None:
            if last.tb_frame.f_code.co_filename == __file__:
                traceback = last.tb_next
            last = last.tb_next
        hook(kind, error.with_traceback(traceback), traceback)

    return excepthook


def _alias_in_commands() -> None:
    """Let the Python programs that this one starts import flambeau as torch, too."""
    from flambeau.as_torch import ALIAS_FOLDER

    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = ALIAS_FOLDER + (os.pathsep + inherited if inherited else "")


# Information --------------------------------------------------------------------------------


def _version() -> str:
    import flambeau

    return f"flambeau {_distribution_version()} (interface of PyTorch {flambeau.__version__})"


def _distribution_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("flambeau")
    except PackageNotFoundError:
        return "(not installed: run from its sources)"


def _info() -> str:
    import platform

    import numpy

    import flambeau
    from flambeau import kernels

    running = kernels.describe()
    rows = {
        "flambeau": f"{_distribution_version()}, in {os.path.dirname(flambeau.__file__)}",
        "interface": f"PyTorch {flambeau.__version__}",
        "Python": f"{platform.python_version()} ({platform.platform()})",
        "NumPy": numpy.__version__,
        "BLAS": _blas(),
        "kernels": "native (C++)" if running["native"] else f"NumPy, since {running['reason']}",
    }
    for name, value in running.items():
        if name not in ("kernels", "native", "reason"):
            rows[name] = value if type(value) is not bool else "yes" if value else "no"
    return "\n".join(f"{name:<10} {value}" for name, value in rows.items())


def _blas() -> str:
    import numpy

    blas = numpy.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{blas['name']} {blas.get('version', '')}".strip()


if __name__ == "__main__":
    sys.exit(main())
