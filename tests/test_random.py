"""The state of the default generator: seeds, and a context that leaves it as it was."""

import pytest

import flambeau as torch


@pytest.fixture(autouse=True)
def as_before():
    state = torch.get_rng_state()
    yield
    torch.set_rng_state(state)


def test_a_seed_starts_a_stream_again():
    assert torch.manual_seed(7) is torch.default_generator and torch.initial_seed() == 7
    first = torch.rand(3)
    torch.manual_seed(7)
    assert torch.equal(torch.rand(3), first) and not torch.equal(torch.rand(3), first)


@pytest.mark.parametrize("seed, kept", [(-1, 2 ** 64 - 1), (2 ** 63, 2 ** 63), (True, 1), (0, 0)])
def test_seeds_of_any_sign(seed, kept):
    torch.manual_seed(seed)
    assert torch.initial_seed() == kept


def test_random_seeds_differ():
    assert torch.seed() == torch.initial_seed() != torch.seed()


def test_a_state_can_be_set_again():
    state = torch.get_rng_state()
    assert state.dtype is torch.uint8 and state.ndim == 1
    first = torch.randn(5)
    torch.set_rng_state(state)
    assert torch.equal(torch.randn(5), first)


@pytest.mark.parametrize("enabled", [True, False])
def test_a_fork_leaves_the_state_as_it_was(enabled):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    with torch.random.fork_rng(devices=[], enabled=enabled):
        torch.rand(2)
    assert torch.equal(torch.get_rng_state(), before) is enabled


def test_a_fork_that_fails_does_too():
    before = torch.get_rng_state()
    with pytest.raises(ZeroDivisionError), torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        raise ZeroDivisionError
    assert torch.equal(torch.get_rng_state(), before)
