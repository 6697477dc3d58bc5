"""The older name of `flambeau.distributed.tensor.experimental`."""
from flambeau.distributed.tensor.experimental import *  # noqa: F403
from flambeau.distributed.tensor.experimental import __all__  # noqa: F401
