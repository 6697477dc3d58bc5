"""The stages of a pipeline: a part of a model that one rank has, and its connections.

`PipelineStage` is made of any module; stages follow one another. `build_stage` makes those of a
traced model, whose values may also skip stages.
"""
from __future__ import annotations

from .._backward import stage_backward, stage_backward_input, stage_backward_weight
from .._utils import (
    GetMeshCallback,
    InferenceMode,
    PipeInfo,
    PipeliningMetadataError,
    TensorMeta,
    _DTensorMeta,
    _MeshCache,
    _StageBackwardMeta,
    _StageForwardMeta,
    _StageMeta,
    _TensorMeta,
    extract_tensor_meta,
    extract_tensor_metas,
    flatten_args,
    validate_and_normalize_to_tuple,
    validate_tensors_metadata,
)
from .base import _normalize_model_output_as_tuple, _PipelineStageBase, _RecvInfo
from .manual import PipelineStage
from .traced import _PipelineStage, build_stage

__all__ = ["PipelineStage", "build_stage"]
