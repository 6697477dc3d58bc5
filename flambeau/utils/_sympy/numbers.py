"""An integer without bound."""
from flambeau.export.dynamic_shapes import int_oo

__all__ = ["int_oo"]
