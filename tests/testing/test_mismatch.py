"""What is said of values that differ."""
import pytest

import flambeau as torch
from flambeau.testing._comparison import make_scalar_mismatch_msg, make_tensor_mismatch_msg


def message(actual, expected, **options):
    matches = torch.isclose(actual, expected, rtol=options["rtol"], atol=options["atol"])
    return make_tensor_mismatch_msg(actual, expected, matches, **options)


def test_tensors():
    text = message(torch.tensor([[1.0, 2.0], [3.0, 9.0]]), torch.tensor([[1.0, 4.0], [3.0, 3.0]]),
                   rtol=0.1, atol=0.2)
    assert text == ("Tensor-likes are not close!\n\n"
                    "Mismatched elements: 2 / 4 (50.0%)\n"
                    "Greatest absolute difference: 6.0 at index (1, 1) (up to 0.2 allowed)\n"
                    "Greatest relative difference: 2.0 at index (1, 1) (up to 0.1 allowed)")


def test_exact_comparisons_say_equal():
    text = message(torch.tensor([1, 2]), torch.tensor([1, 5]), rtol=0, atol=0)
    assert text.startswith("Tensor-likes are not equal!") and "allowed" not in text
    assert "Greatest absolute difference: 3 at index (1,)" in text


@pytest.mark.parametrize("identifier, title", [
    (None, "Scalars are not close!"), ("Losses", "Losses are not close!"),
    (lambda default: f"{default} of mine", "Scalars of mine are not close!")])
def test_scalars(identifier, title):
    text = make_scalar_mismatch_msg(1.0, 2.0, rtol=1e-3, atol=1e-4, identifier=identifier)
    assert text == (f"{title}\n\nExpected 2.0 but got 1.0.\n"
                    "Absolute difference: 1.0 (up to 0.0001 allowed)\n"
                    "Relative difference: 0.5 (up to 0.001 allowed)")


def test_relative_to_zero():
    assert "Relative difference: inf" in make_scalar_mismatch_msg(1.0, 0.0, rtol=1, atol=0)


def test_a_mismatch_of_booleans_is_counted():
    text = message(torch.tensor([True, False]), torch.tensor([True, True]), rtol=0, atol=0)
    assert "Mismatched elements: 1 / 2 (50.0%)" in text
