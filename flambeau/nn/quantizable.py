"""The former name of `flambeau.ao.nn.quantizable`."""
from flambeau._lazy import alias

alias(__name__, "flambeau.ao.nn.quantizable", ())
