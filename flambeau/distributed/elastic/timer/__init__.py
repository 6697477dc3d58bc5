"""Limits of time for parts of a program: a worker that takes longer is ended by its agent.

>>> configure(LocalTimerClient(queue))                                        # doctest: +SKIP
>>> with expires(after=60):                                                   # doctest: +SKIP
...     train_step()
"""
from __future__ import annotations

from flambeau.distributed.elastic.timer.api import (
    TimerClient,
    TimerRequest,
    TimerServer,
    configure,
    expires,
)
from flambeau.distributed.elastic.timer.file_based_local_timer import *
from flambeau.distributed.elastic.timer.local_timer import LocalTimerClient, LocalTimerServer
