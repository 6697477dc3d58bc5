"""Running a function or a program in many processes, as `torchrun` does: see `api`."""
from __future__ import annotations

from flambeau.distributed.launcher.api import LaunchConfig, elastic_launch, launch_agent
