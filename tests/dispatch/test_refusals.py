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
