"""The agent of a machine, which starts workers and watches them.

`SimpleElasticAgent` knows what to do when they fail or when machines come and go; how they are
started is up to classes that derive from it: `LocalElasticAgent` starts processes.
"""
from __future__ import annotations

from flambeau.distributed.elastic.agent.server.api import *
from flambeau.distributed.elastic.agent.server.local_elastic_agent import (
    TORCHELASTIC_ENABLE_FILE_TIMER,
    TORCHELASTIC_TIMER_FILE,
)
