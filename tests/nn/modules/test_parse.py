"""The arguments of `Module.to`."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn.modules._parse import parse_to

CPU = torch.device("cpu")


@pytest.mark.parametrize("args, kwargs, wanted", [
    (("cpu",), {}, (CPU, None, False, None)),
    ((torch.float64,), {}, (None, torch.float64, False, None)),
    ((torch.float64, True), {}, (None, torch.float64, True, None)),
    ((CPU, torch.float16, True), {}, (CPU, torch.float16, True, None)),
    ((torch.ones(1).double(),), {}, (CPU, torch.float64, False, None)),
    ((), {"tensor": torch.ones(1).half(), "non_blocking": True}, (CPU, torch.float16, True, None)),
    ((), {"memory_format": torch.channels_last}, (None, None, False, torch.channels_last)),
    ((), {"device": "meta", "dtype": torch.int8}, (torch.device("meta"), torch.int8, False, None)),
])
def test_forms(args, kwargs, wanted):
    assert parse_to(*args, **kwargs) == wanted


@pytest.mark.parametrize("args, kwargs", [
    (("cpu", torch.float32, False, False, 1), {}), ((3.5,), {}), ((), {"what": 1}),
    (("cpu", "cpu"), {}), ((torch.float32, "cpu"), {"device": "cpu", "dtype": 3})])
def test_what_fits_no_form(args, kwargs):
    with pytest.raises(TypeError, match=r"to\(\) received an invalid combination of arguments"):
        nn.Linear(1, 1).to(*args, **kwargs)


def test_only_floating_types_are_for_modules():
    with pytest.raises(TypeError, match="accepts floating point or complex dtypes, but got"):
        nn.Linear(1, 1).to(torch.int32)


def test_modules_take_no_copy_but_fake_tensors_do():
    with pytest.raises(RuntimeError, match=r"^\.to\(\) does not accept copy argument$"):
        nn.Linear(2, 3).to("cpu", torch.float64, True, False)
    with torch._subclasses.FakeTensorMode():
        x = torch.ones(2)
        assert x.to(torch.float32, False, True) is not x
        assert x.to(torch.float32, False, False).dtype is torch.float32
