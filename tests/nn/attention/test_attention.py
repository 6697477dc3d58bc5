"""Choosing how attention is computed."""
import pytest

import flambeau as torch
from flambeau.nn import attention
from flambeau.nn.attention import SDPBackend, sdpa_kernel

Q = torch.rand(1, 2, 3, 4)


def allowed():
    return set(attention._cur_sdpa_kernel_backends())


def test_numbers_of_the_ways():
    assert [int(b) for b in SDPBackend.__members__.values()] == [-1, 0, 1, 2, 3, 4]
    assert SDPBackend(2) == SDPBackend.EFFICIENT_ATTENTION


def test_choices_nest_and_end():
    before = allowed()
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        assert allowed() == {SDPBackend.MATH, SDPBackend.FLASH_ATTENTION}
        with pytest.raises(KeyError), sdpa_kernel(SDPBackend.MATH):
            assert allowed() == {SDPBackend.MATH}
            raise KeyError
        assert allowed() == {SDPBackend.MATH, SDPBackend.FLASH_ATTENTION}
    assert allowed() == before


@pytest.mark.parametrize("backend", [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION])
def test_each_way_gives_the_same(backend):
    wanted = torch.nn.functional.scaled_dot_product_attention(Q, Q, Q)
    with sdpa_kernel(backend):
        found = torch.nn.functional.scaled_dot_product_attention(Q, Q, Q)
    torch.testing.assert_close(found, wanted)


def test_a_choice_decorates():
    @sdpa_kernel([SDPBackend.MATH])
    def inside():
        return allowed()

    assert inside() == inside() == {SDPBackend.MATH}


@pytest.mark.parametrize("wrong", ["math", 0, None])
def test_other_choices(wrong):
    with pytest.raises(AssertionError, match="Backend must be an instance of SDPBackend or a"), \
            sdpa_kernel(wrong):
        pass


class Handle:
    removed = 0

    def remove(self):
        self.removed += 1


def test_implementations_of_flash_attention():
    assert {"FA3", "FA4"} <= set(attention.list_flash_attention_impls())
    with pytest.raises(ValueError, match="Unknown flash attention impl 'x'"):
        attention.activate_flash_attention_impl("x")
    handle = Handle()
    attention.register_flash_attention_impl("own", register_fn=lambda: handle)
    attention.activate_flash_attention_impl("own")
    assert attention.current_flash_attention_impl() == "own" and not handle.removed
    attention.restore_flash_attention_impl()
    assert attention.current_flash_attention_impl() is None and handle.removed == 1


def test_what_gives_no_handle_has_installed_nothing():
    attention.register_flash_attention_impl("none", register_fn=lambda: None)
    attention.activate_flash_attention_impl("none")
    assert attention.current_flash_attention_impl() is None
