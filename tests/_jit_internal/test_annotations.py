"""What annotations mean to a compiler: containers, optionals, futures."""

import typing

import pytest

import flambeau as torch
from flambeau import _jit_internal as J


@pytest.mark.parametrize("question, yes, no", [
    (J.is_final, typing.Final[int], int), (J.is_tuple, tuple[int, int], list[int]),
    (J.is_list, list[int], int), (J.is_dict, dict[str, int], int),
    (J.is_optional, typing.Optional[int], int | str | None),  # noqa: UP045
    (J.is_union, int | str, int), (J.is_future, torch.jit.Future[int], int)])
def test_annotations(question, yes, no):
    assert question(yes) and not question(no)


def test_containers_need_what_they_contain():
    for question, bare in ((J.is_list, typing.List), (J.is_dict, typing.Dict),  # noqa: UP006
                           (J.is_tuple, typing.Tuple), (J.is_optional, typing.Optional)):  # noqa: UP006
        with pytest.raises(RuntimeError, match=r"without a? ?contained type"):
            question(bare)
    with pytest.raises(RuntimeError, match="Attempted to use list without a contained type"):
        torch.jit.isinstance([1], list)


def test_isinstance_looks_into_containers():
    check = torch.jit.isinstance
    assert check([1, 2], list[int]) and not check([1, "a"], list[int])
    assert check((1, "a"), tuple[int, str]) and not check((1,), tuple[int, str])
    assert check({"a": 1}, dict[str, int]) and check(None, int | None)
    assert check(1, (int, str)) and check(torch.ones(1), torch.Tensor)
    with pytest.warns(UserWarning, match="inner type of a container is lost"):
        assert check([], list[int])


def test_tuples_of_any_length_and_dicts_are_looked_into():
    check = torch.jit.isinstance
    assert check((1, 2, 3), tuple[int, int, int]) and not check((1, 2), tuple[int, int, int])
    assert check({"a": [1]}, dict[str, list[int]]) and not check({"a": ["b"]}, dict[str, list[int]])
    assert check([(1, "a"), (2, "b")], list[tuple[int, str]])
    assert not check([1], dict[int, int]) and not check(None, list[int])
