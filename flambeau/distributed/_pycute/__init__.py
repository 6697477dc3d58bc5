"""Layouts and their algebra, as CuTe has them, in row-major order."""
from flambeau.distributed._pycute.int_tuple import *
from flambeau.distributed._pycute.layout import *
from flambeau.distributed._pycute.typing import Integer
