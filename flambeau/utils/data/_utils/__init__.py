"""What a data loader is made of: collation, fetching, worker processes, and moving of tensors."""

from flambeau.utils.data._utils import collate, fetch, transfer, worker

__all__ = ["collate", "fetch", "transfer", "worker"]
