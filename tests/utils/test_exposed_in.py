"""Where a function is shown to be."""
from flambeau.utils._exposed_in import exposed_in


def test_the_module_is_the_named_one():
    @exposed_in("torch.func")
    def vmap(x):
        return x + 1
    assert vmap.__module__ == "torch.func" and vmap(1) == 2 and vmap.__name__ == "vmap"
