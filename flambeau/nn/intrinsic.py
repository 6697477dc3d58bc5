"""The former name of `flambeau.ao.nn.intrinsic`."""
from flambeau._support.lazy.modules import alias

alias(__name__, "flambeau.ao.nn.intrinsic", (
    "modules", "modules.fused", "qat", "quantized", "quantized.dynamic",
    *(f"qat.modules{part}" for part in ("", ".conv_fused", ".linear_fused", ".linear_relu")),
    *(f"quantized.modules{part}" for part in ("", ".bn_relu", ".conv_relu", ".linear_relu")),
    "quantized.dynamic.modules", "quantized.dynamic.modules.linear_relu"))
