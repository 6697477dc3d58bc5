"""Context parallelism: attention over sequences of which each process has a part."""
from flambeau.distributed.tensor.experimental._context_parallel._attention import *
from flambeau.distributed.tensor.experimental._context_parallel._cp_custom_ops import (
    flex_cp_allgather,
)
from flambeau.distributed.tensor.experimental._context_parallel._load_balancer import (
    _HeadTailLoadBalancer,
    _LoadBalancer,
    _PerDocumentHeadTailLoadBalancer,
    _PTRRLoadBalancer,
)

__all__ = ["_CausalBehavior", "_ContextParallel", "_HeadTailLoadBalancer", "_LoadBalancer",
           "_PTRRLoadBalancer", "_PerDocumentHeadTailLoadBalancer", "_RotateMethod",
           "_context_parallel_shard", "_cp_options", "_disable_context_parallel_dispatcher",
           "_enable_context_parallel_dispatcher", "_is_causal_behavior", "context_parallel",
           "context_parallel_unshard", "flex_cp_allgather", "set_rotate_method"]
