"""What tensors are in files: names of PyTorch, views, sparse and quantised tensors."""

import pickle
import struct
import zipfile

import numpy as np
import pytest
from serialization_cases import archive_of, load, saved

import flambeau
from flambeau import serialization


class Tagged(flambeau.Tensor):
    pass


@pytest.mark.parametrize("weights_only", [True, False])
def test_every_dtype_of_a_pytorch_file(weights_only):
    for name, tensor in load("dtypes", weights_only=weights_only).items():
        assert tensor.dtype is getattr(flambeau, name)
        assert tensor.double().tolist() == [0.0, 1.0, 0.0, 1.0] if name[0] != "c" else True


@pytest.mark.parametrize("mmap", [False, True])
def test_views_keep_strides_offsets_and_shared_memory(mmap):
    views = load("views", mmap=mmap)
    base = views["base"]
    assert base.tolist() == list(range(24))
    assert views["transposed"].stride() == (1, 6)
    assert views["transposed"].tolist() == np.arange(24.0).reshape(4, 6).T.tolist()
    assert views["tail"].storage_offset() == 20
    assert views["expanded"].stride() == (0, 0)
    assert views["empty"].shape == (0, 3)
    assert views["scalar"].shape == ()
    assert views["conj"].tolist() == [1 - 2j, 3 + 4j]
    assert views["neg"].tolist() == [-2.0, 4.0]
    base[2] = -7.0
    assert views["column"][0] == -7.0
    assert load("views")["base"][2] == 2.0  # the file has not changed


@pytest.mark.parametrize("again", [False, True])
def test_quantised_tensors(again):
    """From PyTorch's file, and from a file of ours with the same."""
    found = load("quantized")
    if again:
        found = flambeau.load(saved(found))
    assert (found["dtype"], found["scheme"]) == (flambeau.qint8, flambeau.per_tensor_affine)
    tensor, channels, zeros = found["tensor"], found["channels"], found["float_zeros"]
    assert (tensor.q_scale(), tensor.q_zero_point(), tensor.dtype) == (0.1, 3, flambeau.quint8)
    assert tensor.int_repr().tolist() == [[3, 33], [13, 43], [23, 53]]
    assert channels.q_per_channel_scales().tolist() == [0.5, 0.25]
    assert channels.int_repr().tolist() == [[1, 3, 5], [12, 16, 20]]
    assert zeros.qscheme() is flambeau.per_channel_affine_float_qparams
    assert zeros.dequantize().tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    four_bits = flambeau.quantize_per_tensor(flambeau.ones(2), 1.0, 0, flambeau.quint4x2)
    with pytest.raises(NotImplementedError, match="quint4x2"):
        saved(four_bits)


def test_sparse_tensors_of_a_pytorch_file():
    sparse = load("sparse")
    assert sparse["coo"].layout is flambeau.sparse_coo
    assert sparse["csr"].layout is flambeau.sparse_csr
    for again in (sparse, flambeau.load(saved(sparse))):
        assert flambeau.equal(again["coo"].to_dense(), flambeau.eye(3))
        assert flambeau.equal(again["csr"].to_dense(), flambeau.eye(3))


@pytest.mark.parametrize("weights_only", [True, False])
def test_jagged_tensors_and_layouts_of_a_pytorch_file(weights_only):
    found = load("jagged", weights_only=weights_only)
    assert found["layout"] is flambeau.sparse_csr
    parts = found["jagged"].unbind()
    assert [part.tolist() for part in parts] == [[[0, 1, 2], [3, 4, 5]], [[1, 1, 1]]]
    again = flambeau.load(saved(found))
    assert flambeau.equal(again["jagged"].values(), found["jagged"].values())
    assert again["layout"] is found["layout"]


def test_pickle_uses_only_names_of_pytorch(tmp_path):
    objects = load("objects")
    path = tmp_path / "model.pt"
    flambeau.save(objects, path)
    with zipfile.ZipFile(path) as archive:
        assert "model/data.pkl" in archive.namelist()
        assert b"flambeau" not in archive.read("model/data.pkl")
    assert serialization.get_unsafe_globals_in_checkpoint(path) == []


def test_tensor_subclass():
    tensor = flambeau.ones(2).as_subclass(Tagged)
    tensor.tag = "x"
    file = saved(tensor)
    with serialization.safe_globals([Tagged]):
        again = flambeau.load(file)
    assert type(again) is Tagged
    assert again.tag == "x"
    assert again.tolist() == [1.0, 1.0]


def test_tensors_stay_within_their_memory():
    data = struct.pack("<4f", 1, 2, 3, 4)
    assert flambeau.load(archive_of(tensor_pickle(4, 1, [3], [1]), [data])).tolist() == [2, 3, 4]
    for offset, size, stride in [(2, [3], [1]), (0, [5], [1]), (-1, [2], [1]), (3, [2], [-1]),
                                 (0, [2, 2], [1]), (0, [2**31 - 1] * 3, [1] * 3),
                                 (0, [-2], [1]), (2**31 - 1, [1], [1])]:
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            flambeau.load(archive_of(tensor_pickle(4, offset, size, stride), [data]))
    with pytest.raises(RuntimeError, match="bytes"):
        flambeau.load(archive_of(tensor_pickle(5, 0, [5], [1]), [data]))
    with pytest.raises(RuntimeError, match="data/0"):
        flambeau.load(archive_of(tensor_pickle(4, 0, [4], [1])))


def tensor_pickle(count, offset, size, stride):
    """The pickle of a float tensor with any layout that one asks for."""
    def number(value):
        return b"J" + struct.pack("<i", value)

    def numbers(values):
        return b"(" + b"".join(map(number, values)) + b"t"

    return (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\n"
            b"FloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu" + number(count) + b"tQ"
            + number(offset) + numbers(size) + numbers(stride)
            + b"\x89ccollections\nOrderedDict\n)RtR.")
