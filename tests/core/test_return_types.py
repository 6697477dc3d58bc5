"""Classes of several results: made once, named as the schema names the results."""
import pytest

import flambeau as torch
from flambeau.core.return_types import ReturnType, declare, named, with_out


def test_a_class_is_made_once_for_its_names():
    pair = declare("pair", "first second")
    assert declare("pair", "first second") is pair
    assert declare("pair", "a b") is not pair
    assert issubclass(pair, ReturnType) and pair((1, 2)).second == 2
    with pytest.raises(TypeError, match=r"torch.return_types.pair\(\) takes a 2-sequence"):
        pair((1, 2, 3))


def test_what_out_gives_has_a_class_of_its_own():
    found = with_out(declare("pair", "first second"))
    assert found.__name__ == "pair_out" and found((1, 2)).first == 1


def test_bodies_give_named_results():
    run = named(lambda a, b=2: [a, b], declare("pair", "first second"))
    assert run(1).second == 2 and run(1, b=3).second == 3
    body = len
    assert named(body, tuple) is body and named(body, None) is body


@pytest.mark.parametrize("name, call", [
    ("slogdet", lambda x: torch.slogdet(x)),
    ("qr", lambda x: torch.qr(x)),
    ("svd", lambda x: torch.svd(x, compute_uv=False)),
    ("geqrf", lambda x: torch.geqrf(x)),
    ("linalg_lu_factor", lambda x: torch.linalg.lu_factor(x)),
    ("linalg_ldl_factor", lambda x: torch.linalg.ldl_factor(x)),
    ("histogram", lambda x: torch.histogram(x, 3)),
    ("histogramdd", lambda x: torch.histogramdd(x, [2, 2])),
])
def test_ops_made_of_others_give_the_names_of_their_schemas(name, call):
    found = call(torch.eye(2))
    assert type(found) is getattr(torch.return_types, name)
    assert repr(found).startswith(f"torch.return_types.{name}(\n")


def test_private_results_are_found_by_name():
    found = torch._lu_with_info(torch.eye(2))
    assert type(found) is torch.return_types._lu_with_info
    assert [*found.__match_args__] == ["LU", "pivots", "info"]


def test_a_warning_of_such_an_op_is_about_the_call(recwarn):
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    torch.qr(torch.eye(2))
    torch.set_warn_always(before)
    assert [one.filename for one in recwarn if "torch.qr is deprecated" in str(one.message)] == [
        __file__]
