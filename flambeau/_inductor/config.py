"""Switches of the compiler; it is not there, so that they have no effect."""
import sys
from typing import Any

from flambeau.utils._config_module import install_config_module

debug = False
disable_progress = True
verbose_progress = False
fx_graph_cache = True
fx_graph_remote_cache: Any = None
autotune_local_cache = True
autotune_remote_cache: Any = None
force_disable_caches = False
sleep_sec_TESTING_ONLY: Any = None
cpp_wrapper = False
dce = True
static_weight_shapes = True
size_asserts = True
nan_asserts = False
scalar_asserts = True
pick_loop_orders = True
inplace_buffers = True
allow_buffer_reuse = True
memory_planning = False
benchmark_harness = True
epilogue_fusion = True
epilogue_fusion_first = False
pattern_matcher = True
post_grad_custom_pre_pass: Any = None
post_grad_custom_post_pass: Any = None
joint_custom_pre_pass: Any = None
joint_custom_post_pass: Any = None
pre_grad_custom_pass: Any = None
split_cat_fx_passes = True
efficient_conv_bn_eval_fx_passes = False
group_fusion = False
batch_fusion = True
reorder_for_locality = True
dynamic_scale_rblock = True
force_fuse_int_mm_with_mul = False
use_mixed_mm = True
fallback_random = False
implicit_fallbacks = True
layout_optimization = True
max_autotune = False
max_autotune_pointwise = False
max_autotune_gemm = False
max_autotune_gemm_backends = "ATEN,TRITON,CPP"
max_autotune_conv_backends = "ATEN,TRITON"
autotune_in_subproc = False
coordinate_descent_tuning = False
coordinate_descent_check_all_directions = False
coordinate_descent_search_radius = 1
search_autotune_cache = False
save_args = False
shape_padding = True
comprehensive_padding = True
compile_threads = 1
reorder_for_compute_comm_overlap = False
reorder_for_compute_comm_overlap_passes: list[Any] = []
reorder_for_peak_memory = True
freezing = False
freezing_discard_parameters = False
decompose_mem_bound_mm = False
assume_aligned_inputs = False
unsafe_ignore_unsupported_triton_autotune_args = False
emulate_precision_casts = False
allow_stack_allocation = False
generate_intermediate_hooks = False
constant_and_index_propagation = True
always_keep_tensor_constants = False
assert_indirect_indexing = True
profiler_mark_wrapper_call = False
profile_bandwidth = False
worker_start_method = "subprocess"
graph_partition = True
triton_kernel_default_layout_constraint = "needs_fixed_stride_order"
realize_reads_threshold = 4
realize_opcount_threshold: int | None = None
max_fusion_size = 64
loop_ordering_after_fusion = True
combo_kernels = False
use_experimental_benchmarker = True
_micro_pipeline_tp = False
_collective: Any = None
_raise_error_for_testing = False
_pre_fusion_custom_pass: Any = None


class triton:
    """Switches of kernels in Triton."""
    cudagraphs = False
    cudagraph_trees = True
    cudagraph_skip_dynamic_graphs = False
    slow_path_cudagraph_asserts = True
    fast_path_cudagraph_asserts = False
    autotune_pointwise = True
    autotune_cublasLt = True
    unique_kernel_names = True
    descriptive_names = "original_aten"
    persistent_reductions = True
    multi_kernel = 0
    store_cubin = False
    enable_persistent_tma_matmul = False


class cpp:
    """Switches of kernels in C++."""
    threads = -1
    no_redundant_loops = True
    dynamic_threads = False
    simdlen: Any = None
    min_chunk_size = 512
    enable_kernel_profile = False
    weight_prepack = True
    vec_isa_ok: Any = None
    enable_loop_tail_vec = True
    enable_concat_linear = False


class aot_inductor:
    """Switches of compiling ahead of time."""
    output_path = ""
    debug_compile = False
    package = False
    metadata: dict[str, str] = {}
    serialized_in_spec = ""
    serialized_out_spec = ""
    use_runtime_constant_folding = False
    force_mmap_weights = False


class aten_distributed_optimizations:
    """Switches of the order of collectives in graphs."""
    enable_overlap_scheduling = False
    collective_bucketing: Any = None
    insert_overlap_deps: Any = None
    max_compute_pre_fetch: Any = None
    max_in_flight_gb: Any = None
    compute_overlap_multipler: Any = None
    custom_runtime_estimation: Any = None
    collective_estimator = "analytical"
    max_memory_increase_gb: Any = None
    max_memory_increase_ratio: Any = None
    bucket_mode: Any = None


class cuda:
    """Switches of kernels in CUDA."""
    arch: Any = None
    version: Any = None
    compile_opt_level = "-O1"
    cutlass_dir = ""


class rocm:
    """Switches of kernels for ROCm."""
    arch: list[str] = []
    ck_dir: Any = None


class trace:
    """Switches of what the compiler writes down."""
    enabled = False
    debug_dir: Any = None
    graph_diagram = False


class halide:
    """Switches of kernels in Halide."""
    cpu_target = "host"
    gpu_target = "host-cuda"


install_config_module(sys.modules[__name__])
