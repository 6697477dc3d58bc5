"""The older name of `flambeau.distributed.tensor`."""
from flambeau._lazy import alias

alias(__name__, "flambeau.distributed.tensor", ("experimental", "placement_types"))
