"""Signatures of public functions, as the declarations of ops say them."""
import inspect

import pytest

import flambeau as torch
import flambeau.nn.functional as F
from flambeau.fx.operator_schemas import check_for_mutable_operation, get_signature_for_torch_op


def parameters(function):
    return [list(signature.parameters) for signature in get_signature_for_torch_op(function)]


def test_functions_of_all_namespaces_have_the_signatures_of_their_ops():
    assert parameters(torch.linalg.svd)[0][:2] == ["A", "full_matrices"]
    assert parameters(torch.special.expit) == [["input"], ["input", "out"]]
    assert ["input", "n", "dim", "norm"] in parameters(torch.fft.fft)
    assert parameters(F.avg_pool2d)[0][:3] == ["input", "kernel_size", "stride"]


def test_an_op_may_have_another_name_than_its_function():
    assert parameters(F.logsigmoid) == [["input"], ["input", "out"]]


def test_python_functions_have_none():
    assert get_signature_for_torch_op(F.relu) is None
    assert get_signature_for_torch_op(F.cross_entropy) is None


def test_keywords_of_the_schema_are_keywords():
    found = get_signature_for_torch_op(torch.special.expit)[1].parameters["out"]
    assert found.kind is inspect.Parameter.KEYWORD_ONLY


def test_ops_that_write_are_refused():
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="Tried to trace mutable operation"):
        check_for_mutable_operation(F.elu_, (x,), {})
    check_for_mutable_operation(torch.linalg.inv, (x,), {})
