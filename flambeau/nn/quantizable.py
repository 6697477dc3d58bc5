"""The former name of `flambeau.ao.nn.quantizable`."""
from flambeau._support.lazy.modules import alias

alias(__name__, "flambeau.ao.nn.quantizable", (
    "modules", "modules.activation", "modules.rnn"))
