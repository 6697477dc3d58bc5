from __future__ import annotations

import pickle
import warnings

import pytest

import flambeau
from flambeau import distributed as dist
from flambeau.distributed.pipelining._debug import friendly_debug_info, map_debug_info
from flambeau.distributed.pipelining._utils import (
    InferenceMode,
    PipeliningMetadataError,
    _derive_grad_metas,
    _DTensorMeta,
    _MeshCache,
    _StageMeta,
    _TensorMeta,
    extract_tensor_meta,
    extract_tensor_metas,
    flatten_args,
    generate_rank_to_stage_mapping,
    generate_stage_to_rank_mapping,
    to_local_if_dtensor,
    validate_and_normalize_to_tuple,
    validate_metadata,
    validate_static_arg_grad_correspondence,
    validate_tensors_metadata,
)
from flambeau.distributed.tensor import Replicate, Shard, distribute_tensor

x = flambeau.ones(3, 2, requires_grad=True)
meta = _TensorMeta.from_tensor(x)
other = flambeau.ones(2, 2, dtype=flambeau.float64)


def test_mappings():
    assert generate_stage_to_rank_mapping(2, 6) == {0: 0, 1: 1, 2: 0, 3: 1, 4: 0, 5: 1}
    assert generate_stage_to_rank_mapping(2, 6, "v") == {0: 0, 1: 1, 2: 1, 3: 0, 4: 0, 5: 1}
    assert generate_rank_to_stage_mapping(3, 4) == {0: [0, 3], 1: [1], 2: [2]}
    with pytest.raises(ValueError, match="Style x is not supported"):
        generate_stage_to_rank_mapping(2, 4, "x")
    with pytest.raises(ValueError, match="evenly divisible by pp_size 3 for V schedules"):
        generate_stage_to_rank_mapping(3, 4, "v")


def test_descriptions_of_tensors():
    assert pickle.loads(pickle.dumps(meta)) == meta and hash(meta) == hash(
        _TensorMeta.from_tensor(x))
    made = _TensorMeta.from_tensor(x.t()).to_tensor("cpu")
    assert made.stride() == (1, 2) and made.requires_grad
    assert meta.get_diff(_TensorMeta.from_tensor(x.t())) == [
        "shape mismatch: torch.Size([3, 2]) vs torch.Size([2, 3])",
        "stride mismatch: (2, 1) vs (1, 2)"]
    assert extract_tensor_metas((x, None), allow_none=True) == (meta, None)
    with pytest.raises(PipeliningMetadataError, match="None values are not allowed"):
        extract_tensor_metas((x, None))
    plain = _TensorMeta.from_tensor(flambeau.arange(3))
    grad, none = _derive_grad_metas((meta, plain))
    assert grad.shape == (3, 2) and not grad.requires_grad and none is None


def test_descriptions_of_distributed_tensors(alone):
    mesh = dist.init_device_mesh("cpu", (1,), mesh_dim_names=("tp",))
    sharded = distribute_tensor(flambeau.ones(4, 2), mesh, [Shard(0)])
    found = extract_tensor_meta(sharded)
    assert isinstance(found, _DTensorMeta) and found.mesh_dim_names == ("tp",)
    whole = extract_tensor_meta(distribute_tensor(flambeau.ones(4, 2), mesh, [Replicate()]))
    assert found.get_diff(whole) == ["placements mismatch: (Shard(dim=0),) vs (Replicate(),)"]
    assert found.get_diff(_TensorMeta.from_tensor(flambeau.ones(4, 2))) == [
        "type: _DTensorMeta vs _TensorMeta"]
    cache = _MeshCache()
    with pytest.raises(PipeliningMetadataError, match="Mesh not found in cache"):
        cache.get_mesh(found.mesh_cache_key)
    cache.update_from_tensors((sharded, None))
    assert cache.get_mesh(found.mesh_cache_key) is mesh and len(cache) == 1
    assert found.to_dtensor("cpu", mesh).placements == (Shard(0),)
    assert type(to_local_if_dtensor(sharded)) is flambeau.Tensor
    assert _StageMeta((found,)).has_dtensors()
    with pytest.raises(PipeliningMetadataError, match="expected DTensor or None"):
        validate_static_arg_grad_correspondence(
            0, (sharded.requires_grad_(),), (flambeau.ones(4, 2),), True)


def test_when_a_stage_has_to_be_tried():
    assert InferenceMode.needs_dynamic(_StageMeta(), True)
    assert InferenceMode.needs_dynamic(_StageMeta(inputs=(meta,)), False)
    assert not InferenceMode.needs_dynamic(_StageMeta((meta,), (meta,)), True)


def test_tensors_as_tuples():
    assert validate_and_normalize_to_tuple(x) == (x,)
    assert validate_and_normalize_to_tuple(None) is None
    for bad, message in [((x, None), r"Stage arg\[1\] is None"), (3, "got int"),
                         ((x, 3), r"Stage arg\[1\] has type int")]:
        with pytest.raises(PipeliningMetadataError, match=message):
            validate_and_normalize_to_tuple(bad)


def test_validation():
    assert validate_metadata("d", meta, x) == []
    with pytest.raises(PipeliningMetadataError, match=r"d\[0\]: shape mismatch.*dtype mismatch"):
        validate_tensors_metadata("d", (meta,), (other,))
    with pytest.raises(PipeliningMetadataError, match="d: expected 2 tensors, got 1"):
        validate_tensors_metadata("d", (meta, meta), (x,))
    with pytest.raises(PipeliningMetadataError, match=r"d\[1\]: expected None, got metadata"):
        validate_tensors_metadata("d", (meta, None), (x, x))
    with pytest.warns(UserWarning, match="Using dynamically inferred metadata instead"):
        validate_metadata("d", meta, other, warn_on_mismatch=True)
    with pytest.raises(PipeliningMetadataError, match=r"input_grads length \(1\) does not match"):
        validate_static_arg_grad_correspondence(1, (x, x), (x,), True)
    with pytest.raises(PipeliningMetadataError, match=r"output_args\[0\] has requires_grad=False"):
        validate_static_arg_grad_correspondence(1, (other,), (other,), False)
    with pytest.warns(UserWarning, match="may indicate a missing gradient"):
        validate_static_arg_grad_correspondence(1, (x,), (None,), True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        validate_static_arg_grad_correspondence(1, (x,), (other,), True)


def test_leaves():
    structure, flat = flatten_args(((x, 3),), detach=True)
    assert flat[1] == 3 and flat[0] is structure[0][0] and flat[0] is not x
    assert flat[0].is_leaf and flat[0].requires_grad
    assert flatten_args((x, [1, {"a": 2}])) == [x, 1, 2]


def test_values_in_short():
    short = "Tensor(torch.Size([3, 2]), grad=True, dtype=torch.float32)"
    assert friendly_debug_info(x) == short and friendly_debug_info(3) == "3"
    assert map_debug_info((x, [{"a": x}], None)) == (short, [{"a": short}], "None")
