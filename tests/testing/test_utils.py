"""Random numbers in tests."""
import flambeau as torch
from flambeau.testing._utils import freeze_rng_state, wrapper_set_seed


def test_states_are_kept():
    before = torch.get_rng_state()
    with freeze_rng_state():
        torch.rand(3)
    first = wrapper_set_seed(torch.rand, 3)
    assert torch.equal(torch.get_rng_state(), before)
    with freeze_rng_state():
        torch.manual_seed(42)
        assert torch.equal(first, torch.rand(3))
