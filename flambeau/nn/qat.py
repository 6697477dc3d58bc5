"""The former name of `flambeau.ao.nn.qat`."""
from flambeau._lazy import alias

alias(__name__, "flambeau.ao.nn.qat", ("dynamic",))
