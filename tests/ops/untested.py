"""Ops that need no samples, by the reason why."""
import importlib
import pkgutil

import flambeau.nn.functional  # noqa: F401  (its dropouts are ops too)
from flambeau.core.op import table

REASONS = {
    "not differentiable: see view/test_strided.py":
        "view.dtype",
    "clones that share memory until one is written to: see core/test_copy_on_write.py":
        "_lazy_clone _test_parallel_materialize",
    "PyTorch's for its own tests: see python/test_probes.py": """
        _test_autograd_multiple_dispatch _test_autograd_multiple_dispatch.ntonly
        _test_check_tensor _test_functorch_fallback
        _test_optional_filled_intlist _test_optional_floatlist _test_optional_intlist
        _test_serialization_subcmul _test_warn_in_autograd""",
    "gives places: see reduction/test_searching.py":
        "repeat_interleave.Tensor",
    "x[..., None]: see view/test_strided.py":
        "basic_unsqueeze",
    "`linalg.lu_factor_ex` by an older name":
        "_lu_with_info",
    "the name of x[a:b] for the dispatcher; slice_copy has samples":
        "slice",
    "the derivative is a convention: see quantized/test_tensors.py": """
        fake_quantize_in_range fake_quantize_per_tensor_affine
        fake_quantize_per_tensor_affine.tensor_qparams
        fake_quantize_per_channel_affine fake_quantize_tensor
        fake_quantize_tensor_qparams fake_quantize_channels""",
    "writes averages: see quantized/test_tensors.py":
        "fused_moving_avg_obs_fake_quant",
    "products with integers and with floats of 8 bits: see quantized/test_matmul.py": """
        _int_mm _weight_int8pack_mm _convert_weight_to_int4pack_for_cpu
        _weight_int4pack_mm_for_cpu _dyn_quant_pack_4bit_weight _dyn_quant_matmul_4bit
        _scaled_mm""",
    "checks: see sparse/test_layouts.py": """
        _validate_sparse_coo_tensor_args _validate_sparse_compressed_tensor_args
        _validate_sparse_csr_tensor_args _validate_sparse_csc_tensor_args
        _validate_sparse_bsr_tensor_args _validate_sparse_bsc_tensor_args
        _validate_compressed_sparse_indices""",
    "not differentiable: see view/test_memory.py":
        "empty_permuted hash_tensor slice_inverse",
    "through fft.*":
        "fft_c2c fft_r2c fft_c2r",
    "the overload that pads by itself: see fft/test_transforms.py":
        "stft.center",
    "integers in, constants out; through lu":
        "lu_permutation",
    "gradients of triangles that are not read: see linalg/test_decompositions.py": """
        cholesky_solve cholesky_inverse""",
    "where no derivative is wanted; in linalg/test_decompositions.py": """
        _eigvals _eigvalsh _svdvals _geqrf _ldl_solve""",
    "add and sub with alpha, where no level watches":
        "add_scaled sub_scaled",
    "what div_ with a rounding mode runs; Tensor.div_ has samples":
        "div_rounded",
    "numbers stand for tensors there: as the first overload": """
        div.Scalar_mode floor_divide.Scalar""",
    "there are kernels of it on accelerators alone":
        "mm.dtype bmm.dtype",
    "asks about types and shapes; see python/test_inquiry.py": """
        is_floating_point is_complex is_signed is_inference numel is_same_size
        result_type""",
    "linalg.matrix_norm has samples":
        "nuclear_norm nuclear_norm.dim",
    "histc under vmap; see test_batching.py":
        "histc_rows",
    "through torch._unique: see reduction/test_searching.py":
        "_unique",
    "makes or asks; nothing to differentiate by samples": """
        zeros ones empty full zeros_like ones_like empty_like full_like eye
        empty_strided empty_permuted scalar_tensor tensor as_tensor asarray rand randn
        randint randperm rand_like randn_like randint_like from_numpy from_dlpack
        frombuffer new_zeros new_ones new_empty new_full new_empty_strided arange
        linspace logspace tril_indices triu_indices is_conj is_neg alias copy view""",
    "inner parts of indexing and views; reached under vmap": """
        graph_alias replaced zero basic_alias take_at _tied index
        index_put_many select_first""",
    "what modes are shown in place of others; see dispatch/aten/test_forms.py":
        "lift_fresh _local_scalar_dense sigmoid_backward tanh_backward",
    "the same for each":
        "atleast_1d.Sequence atleast_2d.Sequence atleast_3d.Sequence",
    "see view/test_conjugate_views.py":
        "_neg_view conj_view negative_view",
    "see tensor_calls.txt":
        "_unsafe_masked_index _unsafe_masked_index_put_accumulate",
    "gives nothing":
        "_assert_async _assert_async.msg",
    "writes, to float64 only; see test_coercion.py":
        "float_power_ float_power_.Scalar",
    "softmax under another name; see test_coercion.py":
        "special_softmax special_log_softmax",
    "a derivative of draws; see random/test_draws.py":
        "_dirichlet_grad",
    "PyTorch's is rough and has no derivative: random/test_draws.py":
        "_standard_gamma_grad",
    "the derivative by the first argument: special/test_functions.py":
        "_gamma_slope",
    "what Tensor.polygamma_ runs":
        "polygamma_last",
    "no derivative by design":
        "detach_copy",
    "gives other numbers; see view/test_strided.py":
        "view_copy.dtype",
    "gives other types; see view/test_conversion.py":
        "to to.dtype to.other",
    "the view that slice_copy copies":
        "slice",
    "random; see linalg/test_decompositions.py":
        "svd_lowrank pca_lowrank lobpcg",
}


def reasons():
    """The names of all ops that need no samples."""
    ops = importlib.import_module("flambeau.ops")       # the attribute is the dispatcher's
    for module in pkgutil.walk_packages(ops.__path__, "flambeau.ops."):
        importlib.import_module(module.name)    # also those whose names are looked up late
    found = {name for names in REASONS.values() for name in names.split()}
    return found | {name for name, op in table.items() if elsewhere(name, source_of(op))}


def source_of(op):
    """The module that declares an op."""
    declared = getattr(op.declaration, "canonical", None)
    rules = [op.vjp, *op.rules.values()] if op.declaration is not None else []
    return (getattr(op, "body", None) or declared or op.parts or next(
        filter(callable, rules), op.batch_rule or op.function)).__module__


def elsewhere(name, module):
    """Whether the ops of a module have tests of another kind."""
    return module.startswith(("flambeau.ops.nn.", "flambeau.ops.spatial.", "flambeau.ops.loss.")) \
        or module.rpartition(".")[2] in ("draws", "fills", "sampling", "dropout") \
        or "dropout" in name or name.endswith("_sample") \
        or module in ("flambeau.ops.python.internal", "flambeau.ops.linalg.grouped_products")
