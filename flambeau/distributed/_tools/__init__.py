"""Tools that watch a program: which of its modules runs."""
from flambeau.distributed._tools.mod_tracker import ModTracker
