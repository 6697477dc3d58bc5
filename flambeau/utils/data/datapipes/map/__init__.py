"""Steps of pipes that give their elements by index."""

from flambeau.utils.data.datapipes._map_steps import *
from flambeau.utils.data.datapipes._map_steps import __all__
