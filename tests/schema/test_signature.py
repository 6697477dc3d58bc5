"""What Python sees follows from the schemas, as recorded from PyTorch in `data/overloads.json`."""
import json
from pathlib import Path

import pytest

import flambeau
from flambeau.schema.parser import parse
from flambeau.schema.signature import function_signature, in_order, method_signature

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "overloads.json").read_text())
# PyTorch binds these by hand, or adds their `out=` forms later
BY_HAND = {"function": {"range", "squeeze_copy", "view_copy", "gradient", "tensor_split"} | {
    f"sparse_{kind}_tensor" for kind in ("coo", "csr", "csc", "bsr", "bsc", "compressed")},
    "method": {"is_contiguous", "tensor_split", "to"}}


@pytest.mark.parametrize("kind", ["function", "method"])
def test_signatures_follow_from_schemas(kind):
    different = []
    for name, (schemas, functions, methods) in RECORDED.items():
        expected = functions if kind == "function" else methods
        if not expected:
            continue
        found = [function_signature(parse(text), parse(out) if out else None)
                 if kind == "function" else method_signature(parse(text))
                 for text, out, variants in schemas if kind in variants]
        if [str(s) for s in in_order(found)] != expected:
            different.append(name)
    assert {*different} == BY_HAND[kind]


def test_a_view_of_one_number_stands_for_it():
    pair = flambeau.tensor([0.25, 0.75])
    filled = flambeau.empty(5).uniform_(pair[0], pair[1])
    assert bool((filled >= 0.25).all() and (filled < 0.75).all())
    counts = flambeau.tensor([2, 3])
    assert flambeau.topk(flambeau.arange(5.0), counts[0]).values.tolist() == [4.0, 3.0]
    with pytest.raises(TypeError, match="must be float, not Tensor"):
        flambeau.empty(1).uniform_(pair.requires_grad_()[0], 1.0)
