"""What is said of optimizers that can be scripted."""
import pytest

from flambeau.distributed.optim._deprecation_warning import (
    _scripted_functional_optimizer_deprecation_warning,
)


def test_the_words_and_the_place():
    with pytest.warns(DeprecationWarning, match="`TorchScript` support for functional optimizers "
                                                "is deprecated") as found:
        _scripted_functional_optimizer_deprecation_warning()
    assert found[0].filename == __file__
