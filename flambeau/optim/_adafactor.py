"""Another name of :mod:`flambeau.optim.adafactor`."""

from flambeau.optim.adafactor import Adafactor, adafactor

__all__ = ["Adafactor", "adafactor"]
