"""Extensions in C++. They are written against PyTorch's headers and libraries, which are not here:
what would build one raises `NotImplementedError`; what looks at the machine works.

`torch.library` gives ops that are written in Python the same standing.
"""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any

from flambeau.torch_version import TorchVersion

IS_WINDOWS = sys.platform == "win32"
IS_MACOS = sys.platform.startswith("darwin")
IS_LINUX = sys.platform.startswith("linux")
LIB_EXT = ".pyd" if IS_WINDOWS else ".so"
EXEC_EXT = ".exe" if IS_WINDOWS else ""
CLIB_PREFIX = "" if IS_WINDOWS else "lib"
CLIB_EXT = ".dll" if IS_WINDOWS else ".so"
SHARED_FLAG = "/DLL" if IS_WINDOWS else "-shared"
SUBPROCESS_DECODE_ARGS = ("oem",) if IS_WINDOWS else ()
MINIMUM_GCC_VERSION, MINIMUM_CLANG_VERSION = (5, 0, 0), (3, 3, 0)
MINIMUM_MSVC_VERSION = (19, 0, 24215)
CUDA_HOME = CUDNN_HOME = ROCM_HOME = HIP_HOME = SYCL_HOME = WINDOWS_CUDA_HOME = None
ROCM_VERSION = None
IS_HIP_EXTENSION = False


def _no_headers(name: str) -> Any:
    raise NotImplementedError(f"torch.utils.cpp_extension.{name}: flambeau has none of PyTorch's "
                              "C++ headers and libraries; torch.library takes ops in Python")


def _no_cuda() -> Any:
    raise OSError("CUDA_HOME environment variable is not set. Please set it to your CUDA install "
                  "root.")


class BuildExtension:
    """The build command of setuptools for extensions. Not offered."""

    def __init__(self, *args: Any, **kwargs: Any):
        _no_headers("BuildExtension")

    @classmethod
    def with_options(cls, **options: Any) -> Any:
        """The command with options, for `cmdclass` of `setup`."""
        return type(cls.__name__, (cls,), {"options": options})


def CppExtension(name: str, sources: list[str], *args: Any, **kwargs: Any) -> Any:
    """Not offered: an extension in C++."""
    return _no_headers("CppExtension")


def CUDAExtension(name: str, sources: list[str], *args: Any, **kwargs: Any) -> Any:
    """OSError: there is no CUDA."""
    return _no_cuda()


def SyclExtension(name: str, sources: list[str], *args: Any, **kwargs: Any) -> Any:
    """Not offered: an extension in SYCL."""
    return _no_headers("SyclExtension")


def load(name: str, sources: str | list[str], extra_cflags: Any = None, extra_cuda_cflags: Any =
         None, extra_sycl_cflags: Any = None, extra_ldflags: Any = None, extra_include_paths: Any
         = None, build_directory: str | None = None, verbose: bool = False, with_cuda: bool | None
         = None, with_sycl: bool | None = None, is_python_module: bool = True, is_standalone: bool
         = False, keep_intermediates: bool = True) -> Any:
    """Not offered: build an extension and import it."""
    return _no_headers("load")


def load_inline(name: str, cpp_sources: str | list[str], cuda_sources: Any = None, sycl_sources:
                Any = None, functions: Any = None, extra_cflags: Any = None, extra_cuda_cflags:
                Any = None, extra_sycl_cflags: Any = None, extra_ldflags: Any = None,
                extra_include_paths: Any = None, build_directory: str | None = None, verbose: bool
                = False, with_cuda: bool | None = None, with_sycl: bool | None = None,
                is_python_module: bool = True, with_pytorch_error_handling: bool = True,
                keep_intermediates: bool = True, use_pch: bool = False, no_implicit_headers: bool
                = False) -> Any:
    """Not offered: build an extension from source in strings and import it."""
    return _no_headers("load_inline")


def include_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """Where the headers are: without `torch_include_dirs` there is no need for any."""
    if device_type == "cuda":
        return _no_cuda()
    return _no_headers("include_paths") if torch_include_dirs else []


def library_paths(device_type: str = "cpu", torch_include_dirs: bool = True,
                  cross_target_platform: str | None = None) -> list[str]:
    """Where the libraries are: without `torch_include_dirs` there is no need for any."""
    if device_type == "cuda":
        return _no_cuda()
    return _no_headers("library_paths") if torch_include_dirs else []


# ---- the machine ---------------------------------------------------------------------------------


def get_cxx_compiler() -> str:
    """The C++ compiler: what `$CXX` says, else `c++` (on Windows `cl`)."""
    return os.environ.get("CXX", "cl" if IS_WINDOWS else "c++")


def get_default_build_root() -> str:
    """The folder in which extensions would be built."""
    return os.path.realpath(os.path.join(tempfile.gettempdir(), "torch_extensions"))


def is_ninja_available() -> bool:
    """Is the build tool ninja there?"""
    try:
        subprocess.check_output(["ninja", "--version"])
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def verify_ninja_availability() -> None:
    """RuntimeError unless the build tool ninja is there."""
    if not is_ninja_available():
        raise RuntimeError("Ninja is required to load C++ extensions (pip install ninja to get it)")


def check_compiler_is_gcc(compiler: str) -> bool:
    """Is a compiler GCC?"""
    if not IS_LINUX:
        return False
    path = shutil.which(compiler)
    if path is None:
        return False
    said = subprocess.run([path, "-v"], capture_output=True, text=True, check=False,
                          env={**os.environ, "LC_ALL": "C"})
    return re.search(r"^gcc version", said.stderr + said.stdout, re.MULTILINE) is not None


def check_compiler_ok_for_platform(compiler: str) -> bool:
    """Is this a compiler that is usual here?"""
    path = shutil.which(compiler)
    if path is None:
        return False
    if IS_WINDOWS:
        return True
    names = ["clang++", "clang"] if IS_MACOS else ["g++", "gcc", "gnu-c++", "gnu-cc", "clang++",
                                                   "clang"]
    return os.path.basename(os.path.realpath(path)).startswith(tuple(names)) or \
        check_compiler_is_gcc(compiler)


def get_compiler_abi_compatibility_and_version(compiler: str) -> tuple[bool, TorchVersion]:
    """Is a compiler new enough, and its version."""
    if not check_compiler_ok_for_platform(compiler):
        return False, TorchVersion("0.0.0")
    said = subprocess.run([compiler, "-dumpfullversion", "-dumpversion"], capture_output=True,
                          text=True, check=False).stdout
    parts = [*re.findall(r"\d+", said)[:3], "0", "0", "0"][:3]
    least = MINIMUM_GCC_VERSION if IS_LINUX else MINIMUM_CLANG_VERSION
    return tuple(map(int, parts)) >= least, TorchVersion(".".join(parts))


def _get_pybind11_abi_build_flags() -> list[str]:
    return []


__all__ = ["BuildExtension", "CUDAExtension", "CppExtension", "SyclExtension",
           "check_compiler_is_gcc", "check_compiler_ok_for_platform",
           "get_compiler_abi_compatibility_and_version", "get_cxx_compiler",
           "get_default_build_root", "include_paths", "is_ninja_available", "library_paths",
           "load", "load_inline", "verify_ninja_availability"]
