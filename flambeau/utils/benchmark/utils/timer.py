"""`Timer`, and the clock it reads."""
from flambeau.utils.benchmark.timing import Language, Timer, timer

__all__ = ["Language", "Timer", "timer"]
