"""Where the names of `torch` are that are imported when they are first asked for."""
from __future__ import annotations

import importlib
from typing import Any

_STORAGES = ("Double Float Half BFloat16 Long Int Short Char Byte Bool ComplexDouble ComplexFloat "
             "QUInt8 QInt8 QInt32 QUInt4x2 QUInt2x4").split()
_TYPES = ("Any Await Bool Class Complex DeviceObj Dict Enum Float Future Int Interface List None "
          "Number Optional PyObject RRef StreamObj String SymBool SymInt Tensor Tuple Union"
          ).split()
_CASTS = "Byte Char Short Int Long Half Float Double".split()

# Modules, and their names; `name=other` is the one under the name of the other.
_NAMES = {
    "dispatch.aten.keys": "DispatchKey DispatchKeySet",
    "schema.function_schema": "Argument FunctionSchema",
    "_support.checks": (
        "_check _check_index _check_is_size _check_not_implemented _check_tensor_all "
        "_check_tensor_all_with _check_type _check_value _check_with"),
    "_linalg_utils": "eig lstsq matrix_rank solve symeig=_symeig",
    "_ops": "ops",
    "_support.settings": ("are_deterministic_algorithms_enabled get_deterministic_debug_mode "
                  "get_float32_matmul_precision is_deterministic_algorithms_warn_only_enabled "
                  "is_warn_always_enabled set_deterministic_debug_mode set_flush_denormal "
                  "set_float32_matmul_precision set_warn_always use_deterministic_algorithms"),
    "_utils": "classproperty",
    "_utils_internal": "get_file_path prepare_multiprocessing_environment",
    "amp": "GradScaler autocast",
    "amp.autocast_mode": (
        "autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache "
        "get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype get_autocast_ipu_dtype "
        "get_autocast_xla_dtype is_autocast_cache_enabled is_autocast_cpu_enabled "
        "is_autocast_enabled is_autocast_ipu_enabled is_autocast_xla_enabled "
        "set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled "
        "set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype set_autocast_ipu_dtype "
        "set_autocast_ipu_enabled set_autocast_xla_dtype set_autocast_xla_enabled"),
    "autograd.anomaly_mode": ("is_anomaly_check_nan_enabled is_anomaly_enabled "
                              "set_anomaly_enabled"),
    "compiler": "compile",
    "_higher_order_ops.control_flow": "cond while_loop",
    "func": "vmap",
    "futures": "Future",
    "fx._assertion": "_assert",
    "jit": "CompilationUnit JITException=Error ScriptFunction ScriptModule fork wait",
    "_C": "parse_schema",
    "jit._intermediate": ("import_ir_module import_ir_module_from_buffer "
                          "merge_type_from_type_comment parse_ir parse_type_comment"),
    "schema.types": f"{' '.join(f'{kind}Type' for kind in _TYPES)} Type unify_type_list",
    "kernels": "get_num_threads set_num_threads",
    "core.narrow_dtypes": (
        f"{' '.join(f'{kind}{n}' for kind in ('int', 'uint') for n in range(1, 8))} bits1x8 "
        "bits2x4 bits4x2 bits8 bits16 quint8 qint8 qint32 quint4x2 quint2x4 float4_e2m1fn_x2 bit"),
    "ops.python.probes": (
        "_test_autograd_multiple_dispatch _test_check_tensor _test_functorch_fallback "
        "_test_serialization_subcmul"),
    "ops.python.internal": (
        "_efficientzerotensor _embedding_bag_forward_only _grid_sampler_2d_cpu_fallback "
        "_nnpack_available _nnpack_spatial_convolution "
        "_amp_foreach_non_finite_check_and_unscale_ _amp_update_scale_ "
        "_convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo _grouped_mm "
        "_has_compatible_shallow_copy_type _nested_view_from_buffer _shape_as_tensor "
        "_nested_from_padded _nested_tensor_from_mask _nested_tensor_from_mask_left_aligned "
        "cudnn_is_acceptable is_vulkan_available mkldnn_convolution sym_constrain_range "
        "sym_constrain_range_for_size sym_sqrt "
        f"{' '.join(f'_cast_{kind}' for kind in _CASTS)} "
        "batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt "
        "batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_stats "
        "cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution "
        "cudnn_convolution_add_relu cudnn_convolution_relu cudnn_convolution_transpose "
        "cudnn_grid_sampler fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation "
        "fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation "
        "fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix "
        "miopen_batch_norm miopen_convolution miopen_convolution_add_relu "
        "miopen_convolution_relu miopen_convolution_transpose miopen_ctc_loss "
        "miopen_depthwise_convolution miopen_rnn mkldnn_adaptive_avg_pool2d mkldnn_max_pool2d "
        "mkldnn_max_pool3d mkldnn_linear_backward_weights mkldnn_rnn_layer native_norm "
        "batch_norm_update_stats choose_qparams_optimized empty_quantized quantized_batch_norm "
        "quantized_gru_cell quantized_lstm_cell quantized_max_pool1d quantized_max_pool2d "
        "quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell"),
    "_support.printing": "set_printoptions",
    "random": ("Generator default_generator get_rng_state initial_seed manual_seed seed "
               "set_rng_state thread_safe_generator"),
    "serialization": "PyTorchFileReader load save",
    "signal": "windows",
    "storage": (f"{' '.join(f'{kind}Storage' for kind in _STORAGES)} Storage=FloatStorage "
                "StorageBase TypedStorage UntypedStorage _storage_classes is_storage"),
    "_support.devices.streams": "AcceleratorError Event OutOfMemoryError Stream get_device_module",
    "_support.symbolic_names": "SymBool SymFloat SymInt Tag",
    "testing._filecheck": "FileCheck",
    "utils.dlpack": "to_dlpack",
    "version": "__version__",
}

# The module of each name, and the name that it has there.
PLACES: dict[str, tuple[str, str]] = {
    name.partition("=")[0]: (module, name.rpartition("=")[2])
    for module, names in _NAMES.items() for name in names.split()}


def find(name: str) -> Any:
    """What a name of `torch` stands for; None if it is none of these."""
    if name == "set_vital":
        import warnings
        warnings.warn("'set_vital' is deprecated, please do not call", stacklevel=3)
        return lambda *args: None
    if name not in PLACES:
        return None
    module, own = PLACES[name]
    return getattr(importlib.import_module(f"flambeau.{module}"), own)
