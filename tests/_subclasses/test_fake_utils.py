"""Checking fake results against real ones."""
import pytest

import flambeau as torch
from flambeau._subclasses import fake_utils
from flambeau._subclasses.fake_tensor import FakeTensorMode, MetadataMismatchError


def test_shared_memory():
    x, y = torch.ones(4), torch.zeros(4)
    assert fake_utils.outputs_alias_inputs([x[1:], y], {"a": x})
    assert not fake_utils.outputs_alias_inputs(x.clone(), x)
    assert fake_utils.outputs_are_inputs((y, x), [x])
    assert not fake_utils.outputs_are_inputs(x[:], [x])
    assert fake_utils.output_alias_each_other([x, x[:2]])
    assert not fake_utils.output_alias_each_other([x, y])


def test_what_has_to_look_alike():
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(torch.ones(2, 3))
    check = fake_utils._check_fake_real_tensors
    check(torch.zeros(2, 3), fake, strides=True)
    with pytest.raises(MetadataMismatchError):
        check(torch.zeros(3, 2), fake)
    with pytest.raises(MetadataMismatchError):
        check(torch.zeros(2, 3).double(), fake)
    check(torch.zeros(3, 2).t(), fake)
    with pytest.raises(MetadataMismatchError):
        check(torch.zeros(3, 2).t(), fake, strides=True)


def test_zeros_in_the_shapes_of_fake_tensors():
    mode = FakeTensorMode()
    fake = mode.from_tensor(torch.ones(2, 3))
    real, number = fake_utils.try_convert_fake_to_real([fake, 3])
    assert real.shape == (2, 3) and number == 3


def test_ops_are_checked_as_they_run():
    x = torch.randn(3, 4)
    with fake_utils.CrossRefFakeMode():
        y = (x @ x.t()).relu().sum(0, keepdim=True)
    torch.testing.assert_close(y, (x @ x.t()).relu().sum(0, keepdim=True))


def test_wrong_fake_forms_are_found():
    with torch.library._scoped_library("fake_utils_test", "DEF") as lib:
        lib.define("flat(Tensor x) -> Tensor")
        lib.impl("flat", lambda x: x.reshape(-1).clone(), "CPU")
        lib.impl("flat", lambda x: x.clone(), "Meta")
        with pytest.raises(Exception, match=r"flat|shape|size"), fake_utils.CrossRefFakeMode():
            torch.ops.fake_utils_test.flat(torch.ones(2, 2))
