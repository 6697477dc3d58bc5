"""Architecture optimisation: `ao.quantization` has observers and fake quantisation."""
from flambeau.ao import quantization

__all__ = ["quantization"]
