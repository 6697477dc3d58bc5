"""The former name of `flambeau.ao.nn.qat`."""
from flambeau._support.lazy.modules import alias

alias(__name__, "flambeau.ao.nn.qat", (
    "dynamic", "dynamic.modules", "dynamic.modules.linear", "modules", "modules.conv",
    "modules.embedding_ops", "modules.linear"))
