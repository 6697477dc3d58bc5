"""How the kernels were built."""
from flambeau import kernels

__all__ = ["parallel_info", "show"]


def show() -> str:
    """What `flambeau info` says of the kernels, as text."""
    return "flambeau built with:\n" + "".join(
        f"  - {name}: {value}\n" for name, value in kernels.describe().items())


def _cxx_flags() -> str:
    """With which options the kernels were compiled, as far as that is known."""
    return str(kernels.describe().get("flags", ""))


def parallel_info() -> str:
    """How many threads the kernels use."""
    return f"threads: {kernels.get_num_threads()}\n"
