"""Switches of PyTorch's tracer; there is none, so that they have no effect."""
import sys
from typing import Any

from flambeau.utils._config_module import Config, install_config_module

log_file_name: Any = None
verbose = False
verify_correctness = False
minimum_call_count = 1
dead_code_elimination = True
recompile_limit = 8
accumulated_recompile_limit = 256
cache_size_limit: int = Config(alias="flambeau._dynamo.config.recompile_limit")
accumulated_cache_size_limit: int = Config(
    alias="flambeau._dynamo.config.accumulated_recompile_limit")
skip_code_recursive_on_recompile_limit_hit = True
fail_on_recompile_limit_hit = False
allow_unspec_int_on_nn_module = False
specialize_int = False
specialize_float = False
dynamic_shapes = True
use_lazy_graph_module = True
assume_static_by_default = True
automatic_dynamic_shapes = True
automatic_dynamic_local_pgo = True
automatic_dynamic_remote_pgo = False
force_parameter_static_shapes = True
force_nn_module_property_static_shapes = True
force_unspec_int_unbacked_size_like_on_torchrec_kjt = False
allow_ignore_mark_dynamic = False
guard_nn_modules = True
guard_nn_modules_using_dict_tags = True
prepare_freezing = False
traceable_tensor_subclasses: set[Any] = set()
suppress_errors = False
replay_record_enabled = False
rewrite_assert_with_torch_assert = True
disable = False
cprofile = False
skipfiles_inline_module_allowlist: dict[Any, Any] = {}
allowed_functions_module_string_ignorelist: set[str] = set()
repro_after: Any = None
repro_level = 2
repro_forward_only = False
repro_tolerance = 1e-3
same_two_models_use_fp64 = True
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
prefer_deferred_runtime_asserts_over_guards = False
optimize_ddp: Any = True
do_not_emit_runtime_asserts = False
skip_torchrec = True
skip_nnmodule_hook_guards = True
skip_tensor_guards_with_matching_dict_tags = True
raise_on_ctx_manager_usage = True
raise_on_unsafe_aot_autograd = False
error_on_recompile = False
report_guard_failures = True
base_dir = ""
trace_numpy = True
numpy_default_float = "float64"
numpy_default_complex = "complex128"
numpy_default_int = "int64"
use_numpy_random_stream = False
enable_cpp_guard_manager = True
inline_inbuilt_nn_modules = True
install_free_tensors = False
compiled_autograd = False
compiled_autograd_kwargs_override: dict[str, Any] = {}
enable_compiler_collectives = False
track_nodes_for_deduplication = False
allow_rnn = False
fake_tensor_cache_enabled = True
fake_tensor_cache_crosscheck_enabled = False
caching_precompile = False
reorderable_logging_functions: set[Any] = set()
ignore_logger_methods: set[Any] = set()
ignore_logging_functions: set[Any] = set()
nested_graph_breaks = False
only_allow_pt2_compliant_ops = False
inline_torch_dispatch_torch_compile = True
wrap_top_frame = False
error_on_nested_fx_trace = True
error_on_nested_jit_trace = True

install_config_module(sys.modules[__name__])
