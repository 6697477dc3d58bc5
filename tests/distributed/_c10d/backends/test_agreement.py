"""Do all processes call the same collective? What they say of their calls."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.distributed._c10d.backends import agreement
from flambeau.distributed._c10d.backends.agreement import call_of


def checked(*calls, numbers=None, ranks=None):
    numbers = numbers or [1] * len(calls)
    agreement.check([agreement.in_words(call, number, None)
                     for call, number in zip(calls, numbers)], ranks or list(range(len(calls))))


def test_calls_in_words():
    x = torch.ones(2, 3)
    assert str(call_of("allreduce", [x], "SUM")) == "allreduce(float32[2, 3], SUM)"
    assert str(call_of("barrier", [])) == "barrier()"
    assert str(call_of("broadcast", [], "root 1")) == "broadcast(root 1)"
    assert str(call_of("allreduce", [x] * 9, "MAX")).endswith("float32[2, 3], … 9 tensors, MAX)")


def test_codes_tell_calls_apart():
    x = torch.ones(2, 3)
    calls = [call_of("allreduce", [x], "SUM"), call_of("allreduce", [x], "MAX"),
             call_of("allreduce", [x.int()], "SUM"), call_of("allreduce", [x.t()], "SUM"),
             call_of("reduce", [x], "SUM"), call_of("allreduce", [x, x], "SUM")]
    codes = {agreement.code(call, number) for call in calls for number in (1, 2)}
    assert len(codes) == 12 and all(0 <= code < 1 << 62 for code in codes)
    assert agreement.code(call_of("allreduce", [x + 1], "SUM"), 1) == agreement.code(calls[0], 1)


@pytest.mark.parametrize(("one", "two"), [((6,), (2, 3)), ((2, 1, 3), (2, 3)), ((), (1, 1)),
                                          ((0,), (2, 0))])
def test_flat_tensors_fit_others(one, two):
    checked(call_of("broadcast", [torch.ones(one)]), call_of("broadcast", [torch.ones(two)]))


@pytest.mark.parametrize(("one", "two", "words"), [
    (((2, 3), "SUM"), ((3, 2), "SUM"), r"Tensor shapes: \[\[2, 3\]\] vs \[\[3, 2\]\]"),
    (((6,), "SUM"), ((2, 2), "SUM"), r"Tensor shapes: \[\[6\]\] vs \[\[2, 2\]\]"),
    (((2,), "SUM"), ((2,), "MAX"), "aspects: Reduction or root: SUM vs MAX")])
def test_what_differs(one, two, words):
    with pytest.raises(RuntimeError, match=words):
        checked(*(call_of("allreduce", [torch.ones(shape)], op) for shape, op in (one, two)))


def test_numbers_differ():
    call = call_of("barrier", [])
    with pytest.raises(RuntimeError, match="Sequence number: 3 vs 4"):
        checked(call, call, numbers=[3, 4])


def test_ranks_that_call_the_same_are_named_together():
    x = torch.ones(2)
    same, other = call_of("allreduce", [x], "SUM"), call_of("barrier", [])
    with pytest.raises(RuntimeError) as raised:
        checked(same, other, same, ranks=[5, 6, 8])
    text = str(raised.value)
    assert text.startswith("Detected mismatch between collectives on ranks. Rank 5 is running "
                           "collective: allreduce(float32[2], SUM) #1, but Rank 6 is running")
    assert text.endswith("All ranks:\n  ranks 5, 8: allreduce(float32[2], SUM) #1\n  rank 6: "
                         "barrier() #1")
