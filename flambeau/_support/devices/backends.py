"""What PyTorch says where an op has no kernel for a tensor's backend.

It lists the backends that have one; the transforms that follow them are the same for all ops.
"""
from __future__ import annotations

_TRANSFORMS = (
    "BackendSelect, Python, FuncTorchDynamicLayerBackMode, Functionalize, Conjugate, Negative, "
    "ZeroTensor, ADInplaceOrView, AutogradOther, AutogradCPU, AutogradCUDA, AutogradHIP, "
    "AutogradXLA, AutogradMPS, AutogradIPU, AutogradXPU, AutogradHPU, AutogradVE, AutogradLazy, "
    "AutogradMTIA, AutogradMAIA, AutogradPrivateUse1, AutogradPrivateUse2, AutogradPrivateUse3, "
    "AutogradMeta, AutogradNestedTensor, Tracer, AutocastCPU, AutocastMTIA, AutocastMAIA, "
    "AutocastXPU, AutocastMPS, AutocastCUDA, FuncTorchBatched, BatchedNestedTensor, "
    "FuncTorchVmapMode, Batched, VmapMode, FuncTorchGradWrapper, PythonTLSSnapshot, "
    "FuncTorchDynamicLayerFrontMode, PreDispatch, PythonDispatcher")
_OF_ATEN_ONLY = ("AutogradHIP", "AutogradIPU", "AutogradVE", "AutogradPrivateUse2",
                 "AutogradPrivateUse3", "AutogradNestedTensor")


def no_cuda_library(what: str) -> RuntimeError:
    """The error of what asks CUDA's library itself, which is not there."""
    return RuntimeError(
        f"Cannot {what} without ATen_cuda library. PyTorch splits its backend into two shared "
        "libraries: a CPU library and a CUDA library; this error has occurred because you are "
        "trying to use some CUDA functionality, but the CUDA library has not been loaded by the "
        "dynamic linker for some reason.  The CUDA library MUST be loaded, EVEN IF you don't "
        "directly use any symbols from the CUDA library! One common culprit is a lack of "
        "-Wl,--no-as-needed in your link arguments; many dynamic linkers will delete dynamic "
        "library dependencies if you don't depend on any of their symbols.  You can check if this "
        "has occurred by using ldd on your binary to see if there is a dependency on *_cuda.so "
        "library.")


def could_not_run(name: str, backend: str, *kernels: str) -> NotImplementedError:
    """The error of an op that has `kernels` for other backends only."""
    full, transforms = f"aten::{name}", _TRANSFORMS
    if "::" in name:                            # of another library
        full = name
        transforms = ", ".join([t for t in _TRANSFORMS.split(", ") if t not in _OF_ATEN_ONLY])
    return NotImplementedError(
        f"Could not run '{full}' with arguments from the '{backend}' backend. This could be "
        "because the operator doesn't exist for this backend, or was omitted during the selective/"
        "custom build process (if using custom build). If you are a Facebook employee using "
        "PyTorch on mobile, please visit https://fburl.com/ptmfixes for possible resolutions. "
        f"'{full}' is only available for these backends: "
        f"[{', '.join([*kernels, transforms])}].")


_DENSE = "HIP MPS IPU XPU HPU VE MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3".split()
_LAZY = "HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3".split()


def _every(devices: list[str]) -> tuple[str, ...]:
    """All backends that there are with these devices beside CPU and CUDA."""
    return ("CPU", "CUDA", *devices, "Meta", "FPGA", "Vulkan", "Metal", "QuantizedCPU",
            "QuantizedCUDA", *(f"Quantized{name}" for name in devices), "QuantizedMeta",
            "CustomRNGKeyId", "MkldnnCPU", "SparseCPU", "SparseCUDA",
            *(f"Sparse{name}" for name in devices), "SparseMeta", "SparseCsrCPU", "SparseCsrCUDA",
            *(f"SparseCsr{name}" for name in devices), "SparseCsrMeta", "NestedTensorCPU",
            "NestedTensorHPU")


_ORDER = _every(_LAZY)
_NESTED = {"NestedTensorCPU", "NestedTensorHPU"}
# Kernels that allocate a result suit all backends but those; what is made of other ops, more.
_STRUCTURED = {name for name in _every(_DENSE) if not name.startswith("Sparse")
               or name.startswith("SparseCsr")} - _NESTED
_EXPLICIT = set(_ORDER) - _NESTED


def has_no_kernel(name: str, backend: str, facts: tuple[str, ...]) -> NotImplementedError:
    """`could_not_run` of an overload, of which `facts` are recorded."""
    known = (_STRUCTURED if "structured" in facts else _EXPLICIT if "explicit" in facts
             else {"Meta"} if "no_cpu" in facts else {"CPU", "Meta"}).union(facts)
    if "NestedTensorCPU" in known:
        known.add("NestedTensorHPU")
    return could_not_run(name, backend, *(key for key in _ORDER if key in known - {backend}))


__all__ = ["could_not_run", "has_no_kernel"]
