"""What is said where an op has no kernel for a tensor's backend."""

import re

import pytest

import flambeau as torch
from flambeau._support.devices.backends import could_not_run, has_no_kernel


def listed(error):
    return re.search(r"only available for these backends: \[(.*)\]\.$", str(error))[1].split(", ")


def test_the_kernels_there_are_come_first():
    error = could_not_run("some_op", "CPU", "Meta", "SparseCPU")
    assert str(error).startswith(
        "Could not run 'aten::some_op' with arguments from the 'CPU' backend.")
    assert listed(error)[:3] == ["Meta", "SparseCPU", "BackendSelect"]
    assert listed(error)[-1] == "PythonDispatcher"


@pytest.mark.parametrize("facts, backends", [
    ((), ["CPU", "Meta"]), (("SparseCPU",), ["CPU", "Meta", "SparseCPU"]),
    (("SparseMeta", "CUDA"), ["CPU", "CUDA", "Meta", "SparseMeta"]),
])
def test_kernels_are_listed_in_pytorch_s_order(facts, backends):
    found = listed(has_no_kernel("some_op", "MkldnnCPU", facts))
    assert found[:found.index("BackendSelect")] == backends


def test_structured_ops_have_kernels_for_most():
    found = listed(has_no_kernel("some_op", "SparseCPU", ("structured",)))
    assert {"QuantizedCPU", "SparseCsrCPU", "MkldnnCPU"} < set(found)
    assert not {"SparseCPU", "SparseMeta", "NestedTensorCPU"} & set(found)


def test_users_read_it():
    sparse = torch.ones(2, 2).to_sparse()
    with pytest.raises(NotImplementedError, match=r"Could not run 'aten::.*' with arguments from "
                                                  r"the 'SparseCPU' backend"):
        torch.cumsum(sparse, 0)


def test_ops_of_other_libraries_are_named_with_those():
    message = str(could_not_run("mine::op", "CPU", "Meta"))
    assert message.startswith("Could not run 'mine::op' with") and "[Meta, BackendSelect" in message
    assert "aten" not in message and "AutogradNestedTensor" not in message
