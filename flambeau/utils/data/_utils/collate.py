"""How a list of samples becomes a batch."""

import copy
import re
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence

import numpy as np

import flambeau
from flambeau import Tensor

np_str_obj_array_pattern = re.compile(r"[SaUO]")

default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}")


def default_convert(data):
    """Turn the NumPy arrays and scalars in a sample into tensors; leave all else as it is.

    Example::

        >>> import numpy as np
        >>> from flambeau.utils.data import default_convert
        >>> default_convert({"a": np.array([0, 1]), "b": 3})
        {'a': tensor([0, 1]), 'b': 3}
    """
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)) and not isinstance(data, (np.str_, np.bytes_)):
        if isinstance(data, np.ndarray) and np_str_obj_array_pattern.search(data.dtype.str):
            return data
        return flambeau.as_tensor(data)
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: default_convert(data[key]) for key in data})
    if _is_namedtuple(data):
        return type(data)(*(default_convert(item) for item in data))
    if isinstance(data, tuple):
        return [default_convert(item) for item in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like_sequence(data, [default_convert(item) for item in data])
    return data


def collate(batch, *, collate_fn_map=None):
    """Turn a list of samples into a batch, by rules for the types that samples are made of.

    Mappings, named tuples and sequences are taken apart and their entries collated; for all
    else `collate_fn_map` names a function, which takes the list and `collate_fn_map`.
    """
    first = batch[0]
    kind = type(first)
    rules = collate_fn_map or {}
    if kind in rules:
        return rules[kind](batch, collate_fn_map=rules)
    for types, rule in rules.items():
        if isinstance(first, types):
            return rule(batch, collate_fn_map=rules)
    if isinstance(first, Mapping):
        return _like_mapping(first, {
            key: collate([sample[key] for sample in batch], collate_fn_map=rules)
            for key in first})
    if _is_namedtuple(first):
        return kind(*(collate(column, collate_fn_map=rules)
                      for column in zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [collate(column, collate_fn_map=rules) for column in zip(*batch, strict=True)]
        return columns if isinstance(first, tuple) else _like_sequence(first, columns)
    raise TypeError(default_collate_err_msg_format.format(kind))


def collate_tensor_fn(batch, *, collate_fn_map=None):
    """Stack tensors along a new first dimension."""
    if batch[0].layout is not flambeau.strided:
        raise RuntimeError("Batches of sparse tensors are not currently supported by the default "
                           "collate_fn; please provide a custom collate_fn to handle them "
                           "appropriately.")
    return flambeau.stack(batch, 0)


def collate_numpy_array_fn(batch, *, collate_fn_map=None):
    """Stack arrays as tensors."""
    if np_str_obj_array_pattern.search(batch[0].dtype.str):
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    first = batch[0]
    if (collate_fn_map or {}).get(Tensor) is collate_tensor_fn and all(
            type(array) is np.ndarray and array.dtype is first.dtype and array.flags.writeable
            and array.shape == first.shape for array in batch):
        return flambeau.from_numpy(np.stack(batch))         # one tensor, not one for each
    return collate([flambeau.as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None):
    """NumPy scalars as one tensor of their dtype."""
    return flambeau.as_tensor(batch)


def collate_float_fn(batch, *, collate_fn_map=None):
    """Numbers as one tensor in double precision."""
    return flambeau.tensor(batch, dtype=flambeau.float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    """Integers as one tensor."""
    return flambeau.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    """Strings stay a list."""
    return batch


default_collate_fn_map = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch):
    """Turn a list of samples into a batch: tensors are stacked, numbers become tensors.

    Example::

        >>> from flambeau.utils.data import default_collate
        >>> default_collate([{"x": 1.0, "y": "a"}, {"x": 2.0, "y": "b"}])
        {'x': tensor([1., 2.], dtype=torch.float64), 'y': ['a', 'b']}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def _is_namedtuple(value):
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _like_mapping(example, entries):
    """The entries as a mapping of the example's type, or a dict if it can't be made."""
    try:
        if isinstance(example, MutableMapping):
            clone = copy.copy(example)
            clone.update(entries)
            return clone
        return type(example)(entries)
    except TypeError:
        return entries


def _like_sequence(example, entries):
    """The entries as a sequence of the example's type, or a list if it can't be made."""
    try:
        if isinstance(example, MutableSequence):
            clone = copy.copy(example)
            for i, entry in enumerate(entries):
                clone[i] = entry
            return clone
        return type(example)(entries)
    except TypeError:
        return entries
