"""Models for mobile devices: the names are there, the optimiser needs TorchScript."""
import pytest

from flambeau import nn
from flambeau.utils.mobile_optimizer import (
    LintCode,
    MobileOptimizerType,
    generate_mobile_module_lints,
    optimize_for_mobile,
)


def test_names():
    assert LintCode(2) is LintCode.REQUIRES_GRAD
    assert [code.name for code in LintCode] == ["BUNDLED_INPUT", "REQUIRES_GRAD", "DROPOUT",
                                                "BATCHNORM"]
    assert MobileOptimizerType.REMOVE_DROPOUT.value in range(8)


def test_scripted_modules_are_asked_for():
    for function in (optimize_for_mobile, generate_mobile_module_lints):
        with pytest.raises(TypeError, match=r"but ScriptModule is expected."):
            function(nn.Linear(2, 2))
