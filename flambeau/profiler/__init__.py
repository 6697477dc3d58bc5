"""Profiling by steps: `profile` records what runs, a `schedule` says in which steps.

>>> import flambeau
>>> with profile(activities=[ProfilerActivity.CPU]) as prof:
...     y = flambeau.ones(3).exp()
>>> [event.key for event in prof.key_averages()]
['aten::ones', 'aten::exp']
"""
from flambeau._support.lazy.modules import lazy_modules as _lazy_modules
from flambeau.autograd.profiler import kineto_available, record_function
from flambeau.autograd.profiler_util import DeviceType
from flambeau.profiler.profiler import *
from flambeau.profiler.profiler import ProfilerActivity, _KinetoProfile

__getattr__ = _lazy_modules(__name__, "_memory_profiler", "itt")

__all__ = ["DeviceType", "ExecutionTraceObserver", "ProfilerAction", "ProfilerActivity",
           "kineto_available", "profile", "record_function", "schedule", "supported_activities",
           "tensorboard_trace_handler"]
