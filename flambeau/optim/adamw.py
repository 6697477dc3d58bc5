"""AdamW: Adam with decoupled weight decay, under the name of its own module."""

from flambeau.optim.adam import AdamW, adamw

__all__ = ["AdamW", "adamw"]
