"""Which methods of Tensor come with families of ops that `import flambeau` skips.

Written by `scripts/make_stubs.py`.
"""

METHODS = {
    "flambeau.ops.factory.legacy_types":
        "new type",
    "flambeau.ops.fft.spectrogram":
        "istft stft",
    "flambeau.ops.indexing.masked":
        "masked_scatter masked_scatter_ masked_select put put_ take take_along_dim",
    "flambeau.ops.linalg.added_products":
        "addbmm addbmm_ addmm addmm_ addmv addmv_ addr addr_ baddbmm baddbmm_",
    "flambeau.ops.linalg.decompositions":
        "cholesky qr svd",
    "flambeau.ops.linalg.inverses":
        "det inverse logdet pinverse slogdet",
    "flambeau.ops.linalg.lu":
        "lu_solve",
    "flambeau.ops.linalg.matrix_functions":
        "matrix_exp matrix_power",
    "flambeau.ops.linalg.products":
        "H adjoint cross ger inner kron mH outer vdot",
    "flambeau.ops.linalg.reflections":
        "geqrf orgqr ormqr",
    "flambeau.ops.linalg.solvers":
        "cholesky_inverse cholesky_solve triangular_solve",
    "flambeau.ops.nn.activation":
        "hardshrink prelu",
    "flambeau.ops.nn.softmax":
        "log_softmax softmax",
    "flambeau.ops.python.differences":
        "diff",
    "flambeau.ops.python.inquiry":
        "apply_ map2_ map_",
    "flambeau.ops.python.written":
        "eig lstsq lu reinforce resize resize_as solve symeig unique unique_consecutive",
    "flambeau.ops.quantized.mkldnn":
        "to_mkldnn",
    "flambeau.ops.quantized.tensors":
        "dequantize int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points "
        "q_scale q_zero_point qscheme",
    "flambeau.ops.random.draws":
        "bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_ random_ uniform_",
    "flambeau.ops.random.sampling":
        "bernoulli multinomial",
    "flambeau.ops.reduction.histograms":
        "histc histogram",
    "flambeau.ops.reduction.minmax":
        "amax amin aminmax argmax argmin max min",
    "flambeau.ops.reduction.scan":
        "cummax cummin cumprod cumprod_ cumsum cumsum_ logcumsumexp",
    "flambeau.ops.reduction.searching":
        "argwhere bincount equal hash_tensor nonzero nonzero_static",
    "flambeau.ops.reduction.sort":
        "argsort kthvalue median mode msort nanmedian sort topk",
    "flambeau.ops.reduction.statistics":
        "corrcoef cov dist nanquantile norm quantile renorm renorm_ std var",
    "flambeau.ops.sparse.create":
        "smm sspaddmm",
    "flambeau.ops.sparse.layouts":
        "to_sparse to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr",
    "flambeau.ops.sparse.parts":
        "_coalesced_ _dimI _dimV _indices _nnz _values ccol_indices coalesce col_indices "
        "crow_indices dense_dim indices is_coalesced resize_as_sparse_ row_indices sparse_dim "
        "sparse_mask sparse_resize_ sparse_resize_and_clear_ values",
    "flambeau.ops.sparse.values":
        "to_dense",
    "flambeau.ops.special.functions":
        "digamma digamma_ frexp heaviside heaviside_ i0 i0_ igamma igamma_ igammac igammac_ ldexp "
        "ldexp_ lgamma lgamma_ logaddexp logaddexp2 logit logit_ mvlgamma mvlgamma_ polygamma "
        "polygamma_ sinc sinc_ xlogy xlogy_",
    "flambeau.ops.view.conjugate_views":
        "_conj _neg_view conj is_conj is_neg resolve_conj resolve_neg",
    "flambeau.ops.view.diagonal":
        "diag diag_embed diagflat diagonal tril tril_ triu triu_",
    "flambeau.ops.view.memory":
        "as_strided_ const_data_ptr dim_order fill_diagonal_ is_pinned is_set_to is_shared "
        "module_load pin_memory record_stream resize_ resize_as_ set_ share_memory_ "
        "to_padded_tensor",
    "flambeau.ops.view.scatter_views":
        "diagonal_scatter narrow_copy select_scatter slice_inverse slice_scatter unsafe_chunk "
        "unsafe_split unsafe_split_with_sizes",
}
