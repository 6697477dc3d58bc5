"""Switches of what makes graphs of forward and backward."""
import sys
from typing import Any

from flambeau.utils._config_module import install_config_module

functionalize_rng_ops = False
fake_tensor_allow_meta = True
debug_assert = False
debug_partitioner = False
decompose_custom_triton_ops = True
static_weight_shapes = True
treat_parameters_as_free_to_save = True
cse = True
enable_autograd_cache = True
bundled_autograd_cache = False
max_dist_from_bw = 1000
ban_recompute_used_far_apart = True
ban_recompute_long_fusible_chains = True
ban_recompute_materialized_backward = True
ban_recompute_not_in_allowlist = True
ban_recompute_reductions = True
recompute_views = False
activation_memory_budget = 1.0
activation_memory_budget_runtime_estimator = "flops"
activation_memory_budget_solver: Any = "dp"
aggressive_recomputation = False
fake_tensor_allow_unsafe_data_ptr_access = True
unlift_effect_tokens = False
custom_op_default_layout_constraint = "needs_exact_strides"
fake_tensor_crossref = False
fake_tensor_propagate_real_tensors = False
backward_pass_autocast = "same_as_forward"
donated_buffer = True
torch_compile_graph_format = "svg"
generate_fake_kernels_from_real_mismatches = False
strict_autograd_cache = False
enable_activation_offloading = False
activation_offload_separate_stream = False

install_config_module(sys.modules[__name__])
