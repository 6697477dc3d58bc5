"""The older name of `_context_parallel`."""
from flambeau.distributed.tensor.experimental._context_parallel import (
    _CausalBehavior,
    _context_parallel_shard,
    _ContextParallel,
    _cp_options,
    _disable_context_parallel_dispatcher,
    _enable_context_parallel_dispatcher,
    _HeadTailLoadBalancer,
    _is_causal_behavior,
    _LoadBalancer,
    _PerDocumentHeadTailLoadBalancer,
    _PTRRLoadBalancer,
    _RotateMethod,
    context_parallel,
    context_parallel_unshard,
    set_rotate_method,
)
from flambeau.distributed.tensor.experimental._context_parallel._attention import (
    _templated_ring_attention,
)

__all__ = ["_CausalBehavior", "_ContextParallel", "_HeadTailLoadBalancer", "_LoadBalancer",
           "_PTRRLoadBalancer", "_PerDocumentHeadTailLoadBalancer", "_RotateMethod",
           "_context_parallel_shard", "_cp_options", "_disable_context_parallel_dispatcher",
           "_enable_context_parallel_dispatcher", "_is_causal_behavior",
           "_templated_ring_attention", "context_parallel", "context_parallel_unshard",
           "set_rotate_method"]
