"""Samplers that go on where a run was stopped."""
from __future__ import annotations

from flambeau.distributed.elastic.utils.data.cycling_iterator import CyclingIterator
from flambeau.distributed.elastic.utils.data.elastic_distributed_sampler import (
    ElasticDistributedSampler,
)
