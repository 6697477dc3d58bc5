"""Products of matrices, affine maps, and complex numbers from their parts."""
from samples import Samples, call

family = Samples()
family.untested["view.dtype"] = "not differentiable: see test_reinterpret.py"
family.untested["repeat_interleave.Tensor"] = "gives places: see test_searching.py"
family.untested["basic_unsqueeze"] = "x[..., None]: see test_reinterpret.py"
family.untested["slice"] = "the name of x[a:b] for the dispatcher; slice_copy has samples"
for _name in ("in_range", "per_tensor_affine", "per_tensor_affine.tensor_qparams",
              "per_channel_affine", "tensor", "tensor_qparams", "channels"):
    family.untested[f"fake_quantize_{_name}"] = \
        "the derivative is a convention: see test_quantized_tensors.py"
family.untested["fused_moving_avg_obs_fake_quant"] = \
    "writes averages: see test_quantized_tensors.py"
family.untested |= dict.fromkeys(
    [f"_validate_sparse_{kind}_tensor_args" for kind in ("coo", "compressed", "csr", "csc", "bsr",
                                                         "bsc")]
    + ["_validate_compressed_sparse_indices"], "checks: see sparse/test_layouts.py")
family.untested |= dict.fromkeys(("empty_permuted", "hash_tensor", "slice_inverse"),
                                 "not differentiable: see test_memory_forms.py")


def both(r, *shapes, **kwargs):
    return [call(*[r.real(*s) for s in shapes], **kwargs),
            call(*[r.complex(*s) for s in shapes], **kwargs)]


@family("matmul")
def _(r):
    shapes = [((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)),
              ((2, 2, 3), (3, 2)), ((2, 1, 2, 3), (3, 3, 2)), ((2, 3, 2), (2,)), ((3,), (2, 3, 2))]
    return [c for s in shapes for c in both(r, *s)]


@family("addmm")
def _(r):
    return both(r, (2, 2), (2, 3), (3, 2)) + both(r, (2,), (2, 3), (3, 2), beta=0.5, alpha=2)


@family("nn.functional.linear")
def _(r):
    return [call(r.real(2, 3), r.real(4, 3)), call(r.real(2, 3), r.real(4, 3), r.real(4)),
            call(r.real(2, 2, 3), r.real(4, 3), r.real(4)),
            call(r.real(3), r.real(4, 3), r.real(4)),
            call(r.complex(2, 3), r.complex(4, 3), r.complex(4))]


@family("complex")
def _(r):
    return [call(r.real(2, 3), r.real(2, 3)), call(r.real(2, 1), r.real(3)),
            call(r.real(), r.real())]


@family("polar")
def _(r):
    # of a negative length PyTorch's gradient has the wrong sign
    return [call(abs(r.real(2, 3)), r.real(2, 3)), call(abs(r.real(3)), r.real(2, 1))]
