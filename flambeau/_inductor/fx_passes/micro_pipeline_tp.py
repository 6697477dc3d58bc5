"""Products and collectives that overlap."""
from flambeau._dynamo._absent import COMPILER, absent_function

micro_pipeline_tp_pass = absent_function(__name__, "micro_pipeline_tp_pass", COMPILER)
fuse_all_gather_matmul = absent_function(__name__, "fuse_all_gather_matmul", COMPILER)
fuse_matmul_reduce_scatter = absent_function(__name__, "fuse_matmul_reduce_scatter", COMPILER)
__all__ = ["fuse_all_gather_matmul", "fuse_matmul_reduce_scatter", "micro_pipeline_tp_pass"]
