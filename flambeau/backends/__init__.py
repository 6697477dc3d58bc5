"""What runs the kernels, under torch's names. Only the CPU is there."""
from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import cache, wraps
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from flambeau._support.own_methods import copy_inherited, of_class, shown_as
from flambeau.schema.errors import type_name

_frozen = False


def flags_frozen() -> bool:
    """May switches only be set by `flags()`?"""
    return _frozen


def disable_global_flags() -> None:
    """From now on let switches be set by `flags()` only."""
    global _frozen
    _frozen = True


@contextmanager
def _allow_nonbracketed_mutation() -> Any:
    """Let switches be set inside, whatever `disable_global_flags` has said."""
    global _frozen
    before, _frozen = _frozen, False
    try:
        yield
    finally:
        _frozen = before


globals()["__allow_nonbracketed_mutation"] = _allow_nonbracketed_mutation


_STRICT = ("cudnn", "mkldnn", "matmul")         # whose switches PyTorch keeps in C


def _function(name: str, parameters: str, call: Any) -> Any:
    """A function with these parameters, which it hands to `call`."""
    bind = eval(f"lambda {parameters}: locals()")
    bind.__name__ = bind.__qualname__ = name
    bind.__doc__, bind.__module__ = call.__doc__, __name__

    @wraps(bind)
    def called(*args: Any, **kwargs: Any) -> Any:
        return call(**bind(*args, **kwargs))
    return called


class Backend(ModuleType):
    """A library that PyTorch can use: is it there, and the switches that it has. Each is a module,
    so that `import torch.backends.cudnn` finds it."""

    _functions: tuple[str, ...] = ("is_available", "is_built")

    def __init__(self, name: str, available: bool = False, flags: str = "", **switches: Any):
        super().__init__(f"torch.backends.{name}", type(self).__doc__)
        self.__dict__.update(switches)
        self._available = available
        for function in self._functions:
            self.__dict__[function] = _function(function, "", getattr(self, function))
        if flags:
            own = [part.partition("=")[0] for part in flags.split(", ")]
            several = "=None" if len(own) > 1 else ""
            self.__dict__["flags"] = _function("flags", flags, self._flags)
            self.__dict__["set_flags"] = _function(
                "set_flags", ", ".join([f"_{switch}{several}" for switch in own]), self._set_flags)
        own_name = f"{__name__}.{name}"
        self.__spec__ = ModuleSpec(own_name, None)
        sys.modules[own_name] = self

    def is_available(self) -> bool:
        """Is the library there?"""
        return self._available

    def is_built(self) -> bool:
        """Was the package built with the library?"""
        return self._available

    def _set_flags(self, **switches: Any) -> Any:
        """Set switches for good, all but those that are None, and give what they were."""
        given = {name.lstrip("_"): value for name, value in switches.items()}
        before = tuple([getattr(self, name, None) for name in given])
        for name, value in given.items():
            if value is not None:
                setattr(self, name, value)
        return before

    @contextmanager
    def _flags(self, **switches: Any) -> Any:
        """Set switches until the block ends."""
        with _allow_nonbracketed_mutation():
            before = self._set_flags(**switches)
        try:
            yield
        finally:
            with _allow_nonbracketed_mutation():
                self._set_flags(**dict(zip(switches, before)))

    def __setattr__(self, name: str, value: Any) -> None:
        if _frozen and name in self.__dict__ and name[0] != "_":
            raise RuntimeError(f"not allowed to set {self.__name__} flags after "
                               "disable_global_flags; please use flags() context manager instead")
        library = self.__name__.rpartition(".")[2]
        if library in _STRICT and type(self.__dict__.get(name)) is bool \
                and type(value) is not bool and name[0] != "_":
            library = "cublas" if name == "allow_tf32" else library
            raise RuntimeError(f"set_{name}_{library} expects a bool, but got {type_name(value)}")
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"<backend {self.__name__}>"


class _Verbose:
    """A context that makes a library report what it does: there is nothing to report."""

    def __init__(self, enable: int):
        self.enable = enable

    def __enter__(self) -> _Verbose:
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> bool:
        return False


of_class("verbose", _Verbose)


@copy_inherited("is_available")
class MkldnnModule(Backend):
    """Kernels of another library on a layout of their own."""

    _functions = ()


class _Quantized(Backend):
    """What computes on quantised tensors: one set of kernels, which are exact, under the names of
    PyTorch's libraries. The name decides what default configurations look like."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "engine" and value not in self.supported_engines:
            raise RuntimeError(f"{value} is not a valid value for quantized engine")
        ModuleType.__setattr__(self, name, value)


class _CPU(Backend):
    """The CPU."""

    _functions = ("get_cpu_capability",)

    def get_cpu_capability(self) -> str:
        """The vector instructions that the kernels may use: "AVX512", "AVX2" or "DEFAULT"."""
        from flambeau import cpu
        if cpu._is_avx512_supported():
            return "AVX512"
        return "AVX2" if cpu._is_avx2_supported() else "DEFAULT"


class _CUDA(Backend):
    """Switches of CUDA: what attention may use, and what is for devices that are not there."""

    def __getattr__(self, name: str) -> Any:
        from flambeau.backends import _cuda
        if name[0] == "_" or name not in vars(_cuda):
            raise AttributeError(f"module 'torch.backends.cuda' has no attribute {name!r}")
        return getattr(_cuda, name)


def _is_macos_or_newer(major: int, minor: int) -> bool:
    """False: the device MPS is not offered, whatever the version of macOS."""
    return False


cudnn = Backend("cudnn", flags="enabled=False, benchmark=False, benchmark_limit=10, "
                "deterministic=False, allow_tf32=True, fp32_precision=None, depthwise_kernel=None",
                enabled=False, benchmark=False, deterministic=False, allow_tf32=True,
                benchmark_limit=10, version=lambda: None, is_acceptable=lambda tensor: False)
cuda = _CUDA("cuda", matmul=Backend("cuda.matmul", allow_tf32=False, fp32_precision="none"))
mkl = Backend("mkl", verbose=_Verbose, VERBOSE_OFF=0, VERBOSE_ON=1)
# Its layout is offered (ops/quantized/mkldnn.py), on the package's own kernels.
mkldnn = MkldnnModule("mkldnn", available=True, flags="enabled=False, deterministic=False, "
                      "allow_tf32=True, fp32_precision=None",
                      enabled=True, deterministic=False, verbose=_Verbose,
                      VERBOSE_OFF=0, VERBOSE_ON=1, VERBOSE_ON_CREATION=2)
mps = Backend("mps", is_macos_or_newer=_is_macos_or_newer)
openmp = Backend("openmp")
opt_einsum = Backend("opt_einsum", flags="enabled=None, strategy=None",
                     enabled=True, strategy="auto")
quantized = _Quantized("quantized", available=True, engine="x86",
                       supported_engines=["qnnpack", "onednn", "x86", "fbgemm"])
xeon = Backend("xeon")
cpu = _CPU("cpu", available=True)
cusparselt = Backend("cusparselt")
mha = Backend("mha", _is_fastpath_enabled=True)
nnpack = Backend("nnpack", flags="enabled=False", enabled=True)
xnnpack = Backend("xnnpack", enabled=False)
kleidiai = Backend("kleidiai")
miopen = Backend("miopen", flags="immediate=False", immediate=False)


def _get_fastpath_enabled() -> bool:
    """Whether `nn.MultiheadAttention` may run as one op where nothing is differentiated."""
    return mha._is_fastpath_enabled


def _set_fastpath_enabled(value: bool) -> None:
    """Allow or forbid `nn.MultiheadAttention` to run as one op."""
    mha._is_fastpath_enabled = value


vars(mha).update(get_fastpath_enabled=_get_fastpath_enabled,
                 set_fastpath_enabled=_set_fastpath_enabled)


@cache
@shown_as("is_available")
def _find_opt_einsum() -> bool:
    from importlib.util import find_spec
    return find_spec("opt_einsum") is not None


def _get_opt_einsum() -> Any:
    """The package `opt_einsum`, or None where it is not installed."""
    if not _find_opt_einsum():
        return None
    import opt_einsum as package
    return package


vars(opt_einsum).update(is_available=_find_opt_einsum, get_opt_einsum=_get_opt_einsum)

__all__ = ["cpu", "cuda", "cudnn", "cusparselt", "mha", "mkl", "mkldnn", "mps", "nnpack", "openmp",
           "opt_einsum", "quantized"]
