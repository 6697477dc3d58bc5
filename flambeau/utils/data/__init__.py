"""Datasets, samplers, and the loader that brings samples into batches."""

from flambeau.utils.data import _utils
from flambeau.utils.data._utils.collate import default_collate, default_convert
from flambeau.utils.data._utils.worker import get_worker_info
from flambeau.utils.data.dataloader import DataLoader, _DatasetKind
from flambeau.utils.data.datapipes._decorator import *
from flambeau.utils.data.datapipes.datapipe import *
from flambeau.utils.data.dataset import *
from flambeau.utils.data.distributed import DistributedSampler
from flambeau.utils.data.sampler import *

__all__ = ["BatchSampler", "ChainDataset", "ConcatDataset", "DFIterDataPipe", "DataChunk",
           "DataLoader", "Dataset", "DistributedSampler", "IterDataPipe", "IterableDataset",
           "MapDataPipe", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset",
           "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "_DatasetKind",
           "argument_validation", "default_collate", "default_convert", "functional_datapipe",
           "get_worker_info", "guaranteed_datapipes_determinism", "non_deterministic",
           "random_split", "runtime_validation", "runtime_validation_disabled"]
