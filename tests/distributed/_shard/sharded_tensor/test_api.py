"""A tensor whose pieces are at several processes."""
import copy
import pickle

import pytest
from shard_cases import about, columns, deprecated, piece, rows, whole

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed._shard import sharded_tensor as st
from flambeau.distributed._shard.sharded_tensor import ShardedTensor, ShardedTensorMetadata
from flambeau.distributed._shard.sharded_tensor.metadata import TensorProperties

pytestmark = deprecated


def halves():
    return st.init_from_local_shards([piece(torch.ones(2), 0), piece(torch.zeros(2), 2)], 4)


@pytest.mark.parametrize(("read", "name"), [
    (lambda a: a + a, "add"), (lambda a: a[0], "__getitem__"), (len, "__len__"),
    (lambda a: a.T, "__get__"), (lambda a: a.data, "__get__"), (lambda a: a.nbytes, "__get__"),
    (lambda a: a.numel(), "numel"), (lambda a: a.stride(), "stride"),
    (lambda a: setattr(a, "grad", None), "__set__")])
def test_what_is_not_supported(alone, read, name):
    with pytest.raises(RuntimeError, match=f"torch function '{name}', with args: .* not supported "
                                           "for ShardedTensor!"):
        read(st.ones(whole(), 3, 2))


def test_the_class_is_deprecated(alone):
    a = st.ones(whole(), 3, 2)
    for call in (lambda: a.shape, lambda: a.reshard(columns(0)),
                 lambda: ShardedTensor._init_from_local_tensor(torch.ones(2), whole(), 2)):
        with pytest.warns(FutureWarning, match="Please use DTensor instead and we are deprecating"):
            call()


@pytest.mark.parametrize(("make", "kind", "message"), [
    (lambda: ShardedTensor(3, 2), ValueError, "Expecting ShardingSpec but got: <class 'int'>"),
    (lambda: ShardedTensor(whole(), 2.5), TypeError, "sequence of ints, found"),
    (lambda: st.ones(columns(0), 2), ValueError, "Invalid sharding dim: 1")])
def test_what_is_refused(alone, make, kind, message):
    with pytest.raises(kind, match=message):
        make()


def test_several_pieces(alone):
    a = halves()
    assert a.sharding_spec() == st.api.shard_spec.ChunkShardingSpec(0, ["rank:0/cpu"] * 2)
    out = torch.full((4,), 7.0)
    a.gather(0, out)
    assert out.tolist() == [1, 1, 0, 0]
    with pytest.raises(NotImplementedError, match=r"Only single local shard is supported. Number "
                                                  r"of shards: 2"):
        a.local_tensor()
    with pytest.raises(NotImplementedError, match=r"single local shard supported for reshard. "
                                                  r"Number of shards: 2"):
        a.reshard(whole())
    with pytest.raises(RuntimeError, match="init_rrefs=False, no RRefs to remote shards"):
        a.remote_shards()


def test_gathering_into_other_types(alone):
    a = st.full(whole(), (2,), 2.5, dtype=torch.float64)
    out = torch.zeros(2, dtype=torch.int64)
    a.gather(0, out)
    assert out.tolist() == [2, 2]
    with pytest.warns(FutureWarning, match="`enforce_dtype` is deprecated"), \
            pytest.raises(ValueError, match=r"Invalid usage of tensors with different dtypesFound "
                                            r"torch.float64 and  torch.int64"):
        a.gather(0, out, enforce_dtype=True)
    exact = torch.zeros(2, dtype=torch.float64)
    st.full(whole(), (2,), 1 / 3, dtype=torch.float64).gather(0, exact, dtype=torch.float64)
    assert (exact == 1 / 3).all()


@pytest.mark.parametrize("args", [
    (torch.float64,), ("cpu", torch.float64), (torch.ones(1, dtype=torch.float64),)])
def test_to_another_type(alone, args):
    a = st.ones(whole(), 2)
    made = a.to(*args)
    assert made.dtype is made.local_tensor().dtype is torch.float64
    assert made.metadata().tensor_properties.dtype is torch.float64
    assert a.metadata().tensor_properties.dtype is torch.float32
    assert made.to(*args) is made


def test_to_the_same_or_another_device(alone):
    a = st.ones(whole(), 2)
    assert a.to("cpu") is a.to() is a.cpu() is a
    assert a.to(torch.float32, copy=True).local_tensor().data_ptr() != a.local_tensor().data_ptr()
    made = a.to("meta")
    assert made.device.type == "meta" and made.is_meta
    assert made.metadata().shards_metadata[0].placement.device().type == "meta"
    with pytest.raises(RuntimeError, match=r"Only `torch.contiguous_format` or "
                                           r"`torch.preserve_format` is supported!"):
        a.cpu(memory_format=torch.channels_last)


def of_pieces(shards, metadata):
    return ShardedTensor._init_from_local_shards_and_global_metadata(shards, metadata)


@pytest.mark.parametrize(("shards", "properties", "kind", "message"), [
    ([], {}, RuntimeError, r"Number of local shards \(0\) does not match number of local shards "
                           r"metadata in sharded_tensor_metadata \(1\) on rank \(0\)"),
    ([piece(torch.ones(2), 0)], {"dtype": torch.int8}, ValueError,
     "Local shards' tensor dtype property is incompatible with tensor property on rank 0: tensor "
     "property dtype=torch.int8, local shard tensor dtype=torch.float32"),
    ([piece(torch.ones(2), 0)], {"requires_grad": True}, ValueError,
     "tensor requires_grad property is incompatible")])
def test_pieces_that_are_not_as_told(alone, shards, properties, kind, message):
    metadata = ShardedTensorMetadata([about((0,), (2,))], torch.Size([2]),
                                     TensorProperties(**properties))
    if "dtype" in properties:
        message = message.replace("torch.", r".*\.")
    with pytest.raises(kind, match=message):
        of_pieces(shards, metadata)


def test_metadata_that_is_refused(alone):
    with pytest.raises(ValueError, match="shards_metadata must not be empty!"):
        of_pieces([], ShardedTensorMetadata())
    with pytest.raises(ValueError, match="Total volume of shards: 2 does not match"):
        of_pieces([piece(torch.ones(2), 0)],
                  ShardedTensorMetadata([about((0,), (2,))], torch.Size([3])))
    with pytest.raises(ValueError, match="local_tensor is not a contiguous Tensor"):
        ShardedTensor._init_from_local_tensor(torch.ones(2, 3).t(), whole(), 3, 2)
    assert of_pieces(halves().local_shards()[::-1], halves().metadata()).size() == (4,)


def test_printed_and_compared(alone):
    a = st.ones(whole(), 2)
    assert repr(a) == f"ShardedTensor({a.metadata()})" and hash(a) == id(a)
    assert copy.deepcopy(a).metadata() == a.metadata()
    assert copy.copy(a).local_tensor() is a.local_tensor()


def test_pickles(alone):
    data = pickle.dumps(st.full(whole(), (2,), 3.0, requires_grad=True))
    again = pickle.loads(data)
    assert again.local_tensor().tolist() == [3, 3] and again.requires_grad
    assert again._process_group is dist.group.WORLD and again.sharding_spec() == whole()
    dist.destroy_process_group()
    with pytest.raises(RuntimeError, match='Need to initialize default process group using '
                                           '"init_process_group" before loading ShardedTensor'):
        pickle.loads(data)


def gathered(rank):
    values = torch.arange(10.0).view(5, 2)
    mine = values[:3] if rank == 0 else values[3:]
    a = ShardedTensor._init_from_local_tensor(mine, rows(), 5, 2)
    assert a.local_shards()[0].metadata.shard_offsets == [3 * rank, 0]
    out = torch.zeros(5, 2) if rank == 1 else None
    a.gather(1, out)
    assert rank == 0 or torch.equal(out, values)
    state = a.__getstate__()[2]
    assert state == ShardedTensor.ProcessGroupState(rank, rank, 2, 2)
    other = pickle.dumps(a)
    sent = [None, None]
    dist.all_gather_object(sent, other)
    with pytest.raises(RuntimeError, match=f"Local rank at save time was {1 - rank}, but at load "
                                           f"time was {rank}"):
        pickle.loads(sent[1 - rank])


def test_two_processes(processes):
    processes(gathered)
