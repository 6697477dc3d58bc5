"""Devices are names with numbers; what is not there says so as PyTorch's CPU build does."""
import pickle

import pytest

import flambeau
from flambeau.core import devices


@pytest.mark.parametrize("given,shown,index", [
    (("cpu",), "cpu", None), (("cpu", 0), "cpu:0", 0), (("cpu:0",), "cpu:0", 0),
    (("cuda:1",), "cuda:1", 1), (("meta",), "meta", None)])
def test_names_and_numbers(given, shown, index):
    made = flambeau.device(*given)
    assert str(made) == shown and made.index == index
    assert pickle.loads(pickle.dumps(made)) == made and hash(made) == hash(flambeau.device(*given))


@pytest.mark.parametrize("given,error,said", [
    (("gpu",), RuntimeError, "device type at start of device string: gpu"),
    (("cpu:01",), RuntimeError, "Invalid device string: 'cpu:01'"),
    (("cpu:0", 1), RuntimeError, "must not include an index"),
    (("cpu", -1), RuntimeError, "must not be negative"),
    ((1.5,), TypeError, r"device\(\) received an invalid combination of arguments - got \(float\)"),
    (("cpu", "0"), TypeError, r"argument 'index' \(position 2\) must be int, not str")])
def test_what_is_no_device(given, error, said):
    with pytest.raises(error, match=said):
        flambeau.device(*given)


def test_what_is_not_there():
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        flambeau.ones(2, device="cuda")
    with pytest.raises(RuntimeError, match=r"Could not run .* from the 'XLA' backend"):
        devices.checked("xla")


@pytest.mark.parametrize("kind, said", [
    ("cuda:1", "Cannot get CUDA generator without ATen_cuda library"),
    ("xpu", "Cannot get XPU generator without ATen_xpu library"),
    ("mps", "without MPS backend"), ("meta", "META device type not an accelerator")])
def test_generators_are_on_the_cpu(kind, said):
    with pytest.raises(RuntimeError, match=said):
        flambeau.Generator(kind)


def test_the_default_device_is_a_scope():
    with flambeau.device("meta"):
        assert flambeau.ones(2).device == flambeau.device("meta")
        with flambeau.device("cpu"):
            assert flambeau.ones(2).device == devices.cpu
    assert flambeau.ones(2).device == devices.cpu
    assert not callable(devices.cpu) and flambeau.get_default_device() == devices.cpu


def test_a_default_device_that_is_not_there_shows_where_tensors_are_made():
    with flambeau.device("cuda:1"):
        assert flambeau.get_default_device() == flambeau.device("cuda", 1)
        for make in (lambda: flambeau.ones(1), lambda: flambeau.tensor(1.0),
                     lambda: flambeau.rand(2), lambda: flambeau.nn.Linear(1, 1)):
            with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
                make()
        assert flambeau.ones(1, device="cpu").add(1).device.type == "cpu"
    assert flambeau.ones(1).device.type == "cpu"


def test_tensors_of_one_call_are_on_one_device():
    here, there, number = flambeau.ones(2), flambeau.ones(2, device="meta"), flambeau.tensor(1.0)
    said = "Tensor on device meta is not on the expected device cpu!"
    for call in (lambda: flambeau.cat([here, there]), lambda: flambeau.stack([here, there]),
                 lambda: devices.check_same([here, there])):
        with pytest.raises(RuntimeError, match=said):
            call()
    assert (there + number).device.type == "meta"
    with pytest.raises(RuntimeError, match="Tensor on device cpu is not on the expected device"):
        flambeau.stack([there[0], number])
