"""The former name of `flambeau.ao.quantization`."""
from flambeau._support.lazy.modules import alias

alias(__name__, "flambeau.ao.quantization", (
    "fake_quantize", "fuse_modules", "fuser_method_mappings", "observer", "qconfig", "quant_type",
    "quantization_mappings", "quantize", "quantize_fx", "quantize_jit", "stubs"))
