"""What this machine and its Python are, as text for reports.

Also a command: `python -m flambeau.utils.collect_env`.
"""
from __future__ import annotations

import locale
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

Run = Callable[[Any], tuple[int, str, str]]

TORCH_AVAILABLE = True
PIP_PATTERNS = ["torch", "numpy", "triton", "mypy", "flake8", "optree", "onnx", "flambeau"]
CONDA_PATTERNS = ["cudatoolkit", "soumith", "mkl", "magma", *PIP_PATTERNS]
COMMON_PATTERNS = ["torch", "numpy", "triton", "optree"]
NVIDIA_PATTERNS = ["cuda-cudart", "cuda-cupti", "cuda-libraries", "cuda-opencl", "cuda-nvrtc",
                   "cuda-runtime", "cublas", "cudnn", "cufft", "curand", "cusolver", "cusparse",
                   "nccl", "nvjitlink", "nvtx"]
ONEAPI_PATTERNS = ["dpcpp-cpp-rt", "intel-cmplr-lib-rt", "intel-sycl-rt", "onemkl-sycl",
                   "pti", "tbb", "umf"]


class SystemEnv(NamedTuple):
    """What there is; None where it could not be found out."""

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str | None
    gcc_version: str | None
    clang_version: str | None
    cmake_version: str | None
    os: str | None
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    cuda_runtime_version: str | None
    cuda_module_loading: str
    nvidia_driver_version: str | None
    nvidia_gpu_models: str | None
    cudnn_version: str | None
    is_xpu_available: str
    pip_version: str
    pip_packages: str | None
    conda_packages: str | None
    hip_compiled_version: str
    hip_runtime_version: str
    miopen_runtime_version: str
    caching_allocator_config: dict[str, str]
    is_xnnpack_available: str
    cpu_info: str | None


def run(command: str | list[str]) -> tuple[int, str, str]:
    """Run a command; its exit status, output and errors."""
    try:
        done = subprocess.run(command, shell=isinstance(command, str), capture_output=True,
                              check=False)
    except FileNotFoundError:
        return 127, "", f"Command not found: {command if isinstance(command, str) else command[0]}"
    encoding = "oem" if get_platform() == "win32" else locale.getpreferredencoding()
    output, errors = (text.decode(encoding, "replace").strip()
                      for text in (done.stdout, done.stderr))
    return done.returncode, output, errors


def run_and_read_all(run_lambda: Run, command: Any) -> str | None:
    """The output of a command; None if it fails."""
    status, output, _ = run_lambda(command)
    return output if status == 0 else None


def run_and_parse_first_match(run_lambda: Run, command: Any, regex: str) -> str | None:
    """What the first group of a pattern matches in the output of a command."""
    output = run_and_read_all(run_lambda, command)
    match = None if output is None else re.search(regex, output)
    return match[1] if match else None


def run_and_return_first_line(run_lambda: Run, command: Any) -> str | None:
    """The first line of the output of a command."""
    output = run_and_read_all(run_lambda, command)
    return None if output is None else output.split("\n")[0]


# ---- compilers and libraries ---------------------------------------------------------------------


def get_gcc_version(run_lambda: Run) -> str | None:
    """The version of gcc."""
    return run_and_parse_first_match(run_lambda, "gcc --version", r"gcc (.*)")


def get_clang_version(run_lambda: Run) -> str | None:
    """The version of clang."""
    return run_and_parse_first_match(run_lambda, "clang --version", r"clang version (.*)")


def get_cmake_version(run_lambda: Run) -> str | None:
    """The version of CMake."""
    return run_and_parse_first_match(run_lambda, "cmake --version", r"cmake (.*)")


def get_libc_version() -> str:
    """The C library."""
    return "-".join(platform.libc_ver()) if get_platform() == "linux" else "N/A"


def get_linux_pkg_version(run_lambda: Run, pkg_name: str) -> str:
    """The version of a package of the distribution."""
    versions = run_and_parse_first_match(run_lambda, ["dpkg", "-s", pkg_name], r"Version: (.*)")
    return versions or "N/A"


def get_pip_packages(run_lambda: Run, patterns: list[str] | None = None
                     ) -> tuple[str, str | None]:
    """Which pip there is, and the versions of packages whose names have a pattern in them."""
    patterns = patterns or PIP_PATTERNS + NVIDIA_PATTERNS + ONEAPI_PATTERNS
    output = run_and_read_all(run_lambda, [sys.executable, "-mpip", "list", "--format=freeze"])
    found = None if output is None else "\n".join(
        line for line in output.splitlines() if any(name in line for name in patterns))
    return f"pip{sys.version_info.major}", found


def get_conda_packages(run_lambda: Run, patterns: list[str] | None = None) -> str | None:
    """The packages of conda whose names have a pattern in them."""
    patterns = patterns or CONDA_PATTERNS + COMMON_PATTERNS + NVIDIA_PATTERNS
    output = run_and_read_all(run_lambda, [os.environ.get("CONDA_EXE", "conda"), "list"])
    return None if output is None else "\n".join(
        line for line in output.splitlines()
        if not line.startswith("#") and any(name in line for name in patterns))


# ---- graphics processors -------------------------------------------------------------------------


def get_nvidia_smi() -> str:
    """The command that tells of NVIDIA's devices."""
    if get_platform() == "win32":
        root = os.environ.get("SYSTEMROOT", "C:\\Windows")
        return f'"{os.path.join(root, "System32", "nvidia-smi")}"'
    return "nvidia-smi"


def get_nvidia_driver_version(run_lambda: Run) -> str | None:
    """The version of NVIDIA's driver."""
    return run_and_parse_first_match(run_lambda, get_nvidia_smi(), r"Driver Version: (.*?) ")


def get_gpu_info(run_lambda: Run) -> str | None:
    """The names of NVIDIA's devices."""
    output = run_and_read_all(run_lambda, f"{get_nvidia_smi()} -L")
    return None if output is None else re.sub(r" \(UUID: .+?\)", "", output)


def get_running_cuda_version(run_lambda: Run) -> str | None:
    """The version of NVIDIA's compiler."""
    return run_and_parse_first_match(run_lambda, "nvcc --version", r"release .+ V(.*)")


def get_cudnn_version(run_lambda: Run) -> str | None:
    """Where cuDNN is, if it is."""
    output = run_and_read_all(run_lambda, 'ldconfig -p | grep libcudnn | rev | cut -d" " -f1 | rev')
    files = sorted({os.path.realpath(path) for path in (output or "").splitlines()
                    if os.path.isfile(path)})
    return "\n".join(["Probably one of the following:", *files]) if files else None


def get_cuda_module_loading_config() -> str:
    """`N/A`: there is no CUDA."""
    return "N/A"


def get_cachingallocator_config() -> dict[str, str]:
    """What the environment says of the memory of devices."""
    names = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
    return {name: os.environ[name] for name in names if name in os.environ}


def is_xnnpack_available() -> str:
    """`False`: XNNPACK is not there."""
    return "False"


# ---- the machine ---------------------------------------------------------------------------------


def get_platform() -> str:
    """`linux`, `darwin`, `win32` or `cygwin`."""
    for name in ("linux", "win32", "cygwin", "darwin"):
        if sys.platform.startswith(name):
            return name
    return sys.platform


def get_mac_version(run_lambda: Run) -> str | None:
    """The version of macOS."""
    return run_and_parse_first_match(run_lambda, "sw_vers -productVersion", r"(.*)")


def get_windows_version(run_lambda: Run) -> str | None:
    """The version of Windows."""
    return platform.platform() if get_platform() == "win32" else None


def get_lsb_version(run_lambda: Run) -> str | None:
    """What `lsb_release` says the distribution is."""
    return run_and_parse_first_match(run_lambda, "lsb_release -a", r"Description:\t(.*)")


def check_release_file(run_lambda: Run) -> str | None:
    """What /etc says the distribution is."""
    return run_and_parse_first_match(run_lambda, "cat /etc/*-release", r'PRETTY_NAME="(.*)"')


def get_os(run_lambda: Run) -> str | None:
    """The operating system."""
    from platform import machine
    name = get_platform()
    if name in ("win32", "cygwin"):
        return get_windows_version(run_lambda)
    if name == "darwin":
        version = get_mac_version(run_lambda)
        return version and f"macOS {version} ({machine()})"
    if name == "linux":
        found = check_release_file(run_lambda) or get_lsb_version(run_lambda) or name
        return f"{found} ({machine()})"
    return name


def get_python_platform() -> str:
    """The platform, as Python names it."""
    return platform.platform()


def get_cpu_info(run_lambda: Run) -> str | None:
    """What the processor is."""
    commands = {"linux": "lscpu", "darwin": "sysctl -n machdep.cpu.brand_string",
                "win32": "wmic cpu get Name"}
    command = commands.get(get_platform())
    if command is None:
        return None
    status, output, errors = run_lambda(command)
    return output if status == 0 else errors


# ---- all of it -----------------------------------------------------------------------------------


def get_env_info() -> SystemEnv:
    """What this machine and its Python are."""
    import flambeau
    pip_version, pip_packages = get_pip_packages(run)
    return SystemEnv(
        torch_version=flambeau.__version__, is_debug_build="False", cuda_compiled_version=None,
        gcc_version=get_gcc_version(run), clang_version=get_clang_version(run),
        cmake_version=get_cmake_version(run), os=get_os(run), libc_version=get_libc_version(),
        python_version=f"{sys.version} ({sys.maxsize.bit_length() + 1}-bit runtime)".replace(
            "\n", " "),
        python_platform=get_python_platform(), is_cuda_available="False",
        cuda_runtime_version=get_running_cuda_version(run),
        cuda_module_loading=get_cuda_module_loading_config(),
        nvidia_driver_version=get_nvidia_driver_version(run),
        nvidia_gpu_models=get_gpu_info(run), cudnn_version=get_cudnn_version(run),
        is_xpu_available="False", pip_version=pip_version, pip_packages=pip_packages,
        conda_packages=get_conda_packages(run), hip_compiled_version="N/A",
        hip_runtime_version="N/A", miopen_runtime_version="N/A",
        caching_allocator_config=get_cachingallocator_config(),
        is_xnnpack_available=is_xnnpack_available(), cpu_info=get_cpu_info(run))


env_info_fmt = """
PyTorch version: {torch_version}
Is debug build: {is_debug_build}
CUDA used to build PyTorch: {cuda_compiled_version}
ROCM used to build PyTorch: {hip_compiled_version}

OS: {os}
GCC version: {gcc_version}
Clang version: {clang_version}
CMake version: {cmake_version}
Libc version: {libc_version}

Python version: {python_version}
Python platform: {python_platform}
Is CUDA available: {is_cuda_available}
CUDA runtime version: {cuda_runtime_version}
CUDA_MODULE_LOADING set to: {cuda_module_loading}
GPU models and configuration: {nvidia_gpu_models}
Nvidia driver version: {nvidia_driver_version}
cuDNN version: {cudnn_version}
Is XPU available: {is_xpu_available}
HIP runtime version: {hip_runtime_version}
MIOpen runtime version: {miopen_runtime_version}
Is XNNPACK available: {is_xnnpack_available}
Caching allocator config: {caching_allocator_config}

CPU:
{cpu_info}

Versions of relevant libraries:
{pip_packages}
{conda_packages}
""".strip()


def pretty_str(envinfo: SystemEnv) -> str:
    """The findings as text, a line each."""
    def shown(value: Any) -> str:
        if value is None:
            return "Could not collect"
        return "N/A" if value == {} else str(value)

    def block(value: Any, tag: str) -> str:
        lines = shown(value) if value != "" else "No relevant packages"
        return "\n".join(f"[{tag}] {line}" for line in lines.splitlines())

    facts = {name: shown(value) for name, value in envinfo._asdict().items()}
    models = facts["nvidia_gpu_models"]
    if "\n" in models:
        facts["nvidia_gpu_models"] = f"\n{models}\n"
    facts |= {"pip_packages": block(envinfo.pip_packages, envinfo.pip_version),
              "conda_packages": block(envinfo.conda_packages, "conda")}
    return env_info_fmt.format(**facts)


def get_pretty_env_info() -> str:
    """What this machine and its Python are, as text."""
    return pretty_str(get_env_info())


def main() -> None:
    """Print what this machine and its Python are."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
