"""Neural networks: modules, their parameters, losses, and the tools around them."""

from flambeau._support.lazy.modules import lazy_modules
from flambeau.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

from . import attention, functional, grad, init, modules, parallel, parameter, utils
from .modules import *
from .modules import __all__ as _layers
from .parallel import DataParallel

__all__ = [*_layers, "Buffer", "DataParallel", "Parameter", "UninitializedBuffer",
           "UninitializedParameter", "attention", "factory_kwargs", "functional", "grad", "init",
           "modules", "parallel", "parameter", "utils"]
__getattr__ = lazy_modules(__name__, "intrinsic", "qat", "quantizable", "quantized")


def factory_kwargs(kwargs):
    """The options of `kwargs` that a tensor is made with: device, dtype, memory_format.

    A module that takes ``**kwargs`` checks and forwards them with it. What is under the key
    ``factory_kwargs`` is merged in.

    Example:
        >>> nn.factory_kwargs({"dtype": flambeau.float64})
        {'dtype': torch.float64}
    """
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    expected = simple | {"factory_kwargs"}
    if not kwargs.keys() <= expected:
        raise TypeError(f"unexpected kwargs {kwargs.keys() - expected}")
    merged = dict(kwargs.get("factory_kwargs", {}))
    for name in simple & kwargs.keys():
        if name in merged:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        merged[name] = kwargs[name]
    return merged
