"""Orders of collectives that programs choose."""
from flambeau._dynamo._absent import COMPILER, absent_class, absent_function
from flambeau._inductor.fx_passes.overlap_scheduling import OverlapScheduler

ManualOverlapPreservingBucketer = absent_class(__name__, "ManualOverlapPreservingBucketer",
                                               COMPILER)
ManualOverlapScheduler = absent_class(__name__, "ManualOverlapScheduler", COMPILER,
                                      OverlapScheduler)
manual_overlap_bucketing = absent_function(__name__, "manual_overlap_bucketing", COMPILER)
__all__ = ["ManualOverlapPreservingBucketer", "ManualOverlapScheduler",
           "manual_overlap_bucketing"]
