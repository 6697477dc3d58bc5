"""The older place of `fully_shard`."""
# ruff: noqa: F401
from flambeau.distributed.fsdp import (
    FSDPModule,
    UnshardHandle,
    fully_shard,
    register_fsdp_forward_method,
)
