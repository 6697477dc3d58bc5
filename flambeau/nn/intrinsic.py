"""The former name of `flambeau.ao.nn.intrinsic`."""
from flambeau._lazy import alias

alias(__name__, "flambeau.ao.nn.intrinsic", ("modules", "qat", "quantized", "quantized.dynamic"))
