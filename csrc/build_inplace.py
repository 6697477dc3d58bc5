"""Build the native kernels into the source tree: ``python csrc/build_inplace.py [-j JOBS]``.

Leaves ``flambeau/kernels/_native*.so`` (ignored by git), for work on a checkout with
``PYTHONPATH`` set. Needs CMake, a C++17 compiler and NumPy; Ninja is used where it is found.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-j", "--jobs", type=int, default=min(2, os.cpu_count() or 1))
    jobs = parser.parse_args().jobs
    build = ROOT / "build" / f"inplace-{sys.implementation.cache_tag}"
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    subprocess.run(
        ["cmake", "-S", ROOT, "-B", build, *generator, "-DCMAKE_BUILD_TYPE=Release",
         f"-DPython_EXECUTABLE={sys.executable}"], check=True)  # fmt: skip
    subprocess.run(["cmake", "--build", build, "-j", str(jobs)], check=True)
    for library in [*build.glob("_native*.so"), *build.glob("_native*.pyd")]:
        target = ROOT / "flambeau" / "kernels" / library.name
        fresh = target.with_suffix(".new")
        shutil.copy2(library, fresh)
        os.replace(fresh, target)  # a process that has the old file mapped keeps it
        print(target.relative_to(ROOT))


if __name__ == "__main__":
    main()
