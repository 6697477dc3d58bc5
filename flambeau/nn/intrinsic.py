"""The former name of `flambeau.ao.nn.intrinsic`."""
from flambeau._support.lazy_modules import alias

alias(__name__, "flambeau.ao.nn.intrinsic", ("modules", "qat", "quantized", "quantized.dynamic"))
