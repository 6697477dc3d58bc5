"""The former name of `flambeau.ao.nn.quantized`."""
from flambeau._support.lazy.modules import alias

_MODULES = "utils linear conv activation batchnorm embedding_ops functional_modules " \
           "normalization rnn dropout"
alias(__name__, "flambeau.ao.nn.quantized", ("dynamic", "functional", "modules", *(
    f"modules.{name}" for name in _MODULES.split()), *(
    f"dynamic.modules{part}" for part in ("", ".conv", ".linear"))))
