"""Calls with tensors of other backends that fit no signature, or whose op has no kernel there."""
import warnings

import pytest

import flambeau as torch
import flambeau.nn.functional as F


def made(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")         # of prototypes and what is to be removed
        x = torch.ones(2, 3)
        return {"sparse": x.to_sparse, "opaque": x.to_mkldnn,
                "quantised": lambda: torch.quantize_per_tensor(x, 0.1, 0, torch.quint8),
                "nested": lambda: torch.nested.nested_tensor([x[0], x[1, :2]])}[kind]()


WRONG = {
    "vstack() takes 1 positional argument but 3 were given": lambda x: torch.vstack(5, 6, x),
    "index_select() missing 2 required positional argument: \"dim\", \"index\"":
        lambda x: torch.index_select(x, pin_memory=3),
    "TensorBase.log10() takes no arguments (1 given)": lambda x: torch.ones(2).log10(x),
    "TensorBase.sin() takes no keyword arguments": lambda x: x.sin(out=3),
    "convolution(): argument 'weight' (position 2) must be Tensor, not str":
        lambda x: torch.convolution(x, "a", None, 1, 0, 1, False, 0, 1),
    "amax() got an unexpected keyword argument 'foo'": lambda x: torch.amax(x, foo=1),
    "relu() takes from 1 to 2 positional arguments but 3 were given": lambda x: F.relu(x, 1, 2),
    "triplet_margin_loss() got an unexpected keyword argument 'foo'":
        lambda x: F.triplet_margin_loss(x, x, x, foo=1)}


@pytest.mark.parametrize("kind", ("sparse", "opaque", "quantised", "nested"))
@pytest.mark.parametrize("said", WRONG)
def test_a_wrong_call_is_that_whatever_its_tensors_are(kind, said):
    with pytest.raises(TypeError) as caught:
        WRONG[said](made(kind))
    assert str(caught.value).split("\n")[0] == said


@pytest.mark.parametrize("kind, backend", [("opaque", "MkldnnCPU"), ("quantised", "QuantizedCPU"),
                                           ("nested", "NestedTensorCPU")])
def test_an_op_without_a_kernel_names_the_backend_and_those_that_have_one(kind, backend):
    with pytest.raises(NotImplementedError) as caught:
        made(kind).mode()
    first = str(caught.value).split("\n")[0]
    assert first.startswith(f"Could not run 'aten::mode' with arguments from the '{backend}' "
                            "backend. This could be because the operator doesn't exist")
    assert "'aten::mode' is only available for these backends: [CPU, " in first


@pytest.mark.parametrize("kind", ("sparse", "opaque", "quantised", "nested"))
def test_what_is_made_of_others_names_the_one_that_fails(kind):
    with pytest.raises((NotImplementedError, RuntimeError)) as caught:
        torch.fft.fftshift(made(kind))
    assert "fftshift" not in str(caught.value)


@pytest.mark.parametrize("call, said", [
    (lambda x: x.cumsum(0), "Could not run 'aten::cumsum.out'"),
    (lambda x: x.argmax(1), "Could not run 'aten::argmax.out'"),
    (lambda x: x.sum(1), "Could not run 'aten::sum.IntList_out'"),
    (lambda x: x.logical_and(x), "Could not run 'aten::logical_and.out'"),
    (lambda x: x + torch.ones(3), "promoteTypes with quantized numbers is not handled yet"),
    (lambda x: x + 1, "empty_strided not supported on quantized tensors yet")])
def test_what_allocates_its_result_calls_the_form_that_writes(call, said):
    with pytest.raises((NotImplementedError, RuntimeError)) as caught:
        call(made("quantised"))
    assert str(caught.value).startswith(said)


def test_compressed_and_opaque_tensors_are_refused_by_layout():
    for x, layout in ((torch.ones(2, 3).to_sparse_csr(), "SparseCsr"), (made("opaque"), "Mkldnn")):
        with pytest.raises(RuntimeError, match=f"unsupported tensor layout: {layout}"):
            x.maximum(x)
        with pytest.raises(RuntimeError, match=f"resize_reduction: .*with {layout} layout"):
            x.argmax(1)
