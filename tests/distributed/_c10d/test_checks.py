"""What collectives refuse before anything moves."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed._c10d import checks


def test_types_of_arguments():
    checks.single_tensor(torch.ones(1), "x")
    checks.tensor_list([torch.ones(1)], "x")
    with pytest.raises(TypeError, match=r"parameter `x` of type torch\.Tensor\s+but got <class 'l"):
        checks.single_tensor([torch.ones(1)], "x")
    for value in (torch.ones(2), (torch.ones(1),), [torch.ones(1), 3]):
        with pytest.raises(TypeError, match=r"parameter `x` of type List\[torch\.Tensor\]"):
            checks.tensor_list(value, "x")


@pytest.mark.parametrize("op", ["BAND", "BOR", "BXOR"])
def test_masks_are_of_integers(op):
    op = getattr(dist.ReduceOp, op)
    assert checks.reduction(torch.ones(1, dtype=torch.int8), op, "gloo") == op.name
    assert checks.reduction(torch.ones(1, dtype=torch.bool), op, "gloo") == op.name
    for x in (torch.ones(1), torch.ones(1, dtype=torch.complex64)):
        with pytest.raises(RuntimeError, match=f"Cannot use ReduceOp.{op.name} with non-integral"):
            checks.reduction(x, op, "gloo")


def test_types_are_compared_with_the_first():
    x, y = torch.ones(1), torch.ones(1, dtype=torch.int64)
    checks.same_type(x, x)
    with pytest.raises(ValueError, match=r"Found torch.float32 and  torch.int64"):
        checks.same_type(x, x, y)


def test_parts_of_a_tensor():
    x = torch.arange(6).view(6, 1)
    assert [p.flatten().tolist() for p in checks.split(x, None, 3)] == [[0, 1], [2, 3], [4, 5]]
    assert [p.shape[0] for p in checks.split(x, [1, 0, 5], 3)] == [1, 0, 5]
    assert checks.split(torch.tensor(3), [], 1)[0].item() == 3
    for sizes, words in (([], "dim 0 does not divide equally across group size"),
                         ([6], "Number of tensor splits not equal to group size"),
                         ([1, 1, 1, 1], "Split sizes doesn't match total dim 0 size")):
        with pytest.raises(RuntimeError, match=words):
            checks.split(x, sizes, 4)


def test_what_has_arrived_gets_its_shape():
    assert checks.fitting(torch.arange(4), torch.empty(2, 2), "x").tolist() == [[0, 1], [2, 3]]
    with pytest.raises(RuntimeError, match="x: received 4 elements, but the tensor has 3"):
        checks.fitting(torch.arange(4), torch.empty(3), "x")


@pytest.mark.parametrize(("dtype", "shape", "fits"), [
    ("torch.float32", [6], True), ("torch.float32", [3, 2], True), ("torch.float32", [5], False),
    ("torch.int32", [6], False)])
def test_messages_fit_by_type_and_number(dtype, shape, fits):
    said = checks.misfit(torch.ones(2, 3), "rank 1", dtype, shape, "rank 0")
    assert said == ("" if fits else "Detected mismatch between send and recv: rank 0 sends "
                    f"{dtype} {shape}, but rank 1 receives torch.float32 [2, 3]")


def test_parts_that_are_exchanged():
    checks.part(3, 0, 3, 1)
    with pytest.raises(RuntimeError, match=r"Rank 0 sends 3 elements to rank 1 .* expects 4"):
        checks.part(3, 0, 4, 1)
