"""Sequences of different lengths in one tensor: padded, or packed without padding.

A packed sequence holds the first elements of all sequences, then the second elements of all that
have one, and so on; `batch_sizes` counts them. So every time step is one contiguous block, as
recurrent layers want it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import flambeau
from flambeau import Tensor
from flambeau.ops.node_names import one_node
from flambeau.schema.arguments import bound_by
from flambeau.utils._typing_utils import copy_method_params  # noqa: F401

__all__ = ["PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence",
           "pad_packed_sequence", "pad_sequence", "unpack_sequence", "unpad_sequence"]


class PackedSequence_(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedSequence_):
    """What `pack_padded_sequence` makes: data, and how many sequences each time step has.

    Example:
        >>> nn.utils.rnn.pack_sequence([flambeau.tensor([1, 2, 3]), flambeau.tensor([4])])
        PackedSequence(data=tensor([1, 4, 2, 3]), batch_sizes=tensor([2, 1, 1]), \
sorted_indices=None, unsorted_indices=None)
    """

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is not None:
            if batch_sizes.device.type != "cpu":
                raise ValueError(
                    "batch_sizes should always be on CPU. Instances of PackedSequence should never "
                    "be created manually. They should be instantiated by functions like "
                    "pack_sequence and pack_padded_sequences in nn.utils.rnn. https://pytorch.org/"
                    "docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence")
        else:  # the old form, with both in one pair
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs):
        """The same sequences on another device or in another dtype."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        kwargs = {k: v for k, v in kwargs.items() if k not in ("device", "dtype")}

        def move(indices):
            return None if indices is None else indices.to(data.device, **kwargs)

        return type(self)(data, self.batch_sizes, move(self.sorted_indices),
                          move(self.unsorted_indices))

    def cuda(self, *args, **kwargs):
        """The sequence with its data on the device "cuda"."""
        return self.to(*args, device="cuda", **kwargs)

    def cpu(self, *args, **kwargs):
        """The sequence with its data on the device "cpu"."""
        return self.to(*args, device="cpu", **kwargs)

    def pin_memory(self):
        """The sequence in pinned memory."""
        def pin(tensor):
            return None if tensor is None else tensor.pin_memory()

        return type(self)(pin(self.data), self.batch_sizes, pin(self.sorted_indices),
                          pin(self.unsorted_indices))

    def double(self):
        """The sequence with its data as float64."""
        return self.to(dtype=flambeau.double)

    def float(self):
        """The sequence with its data as float32."""
        return self.to(dtype=flambeau.float)

    def half(self):
        """The sequence with its data as float16."""
        return self.to(dtype=flambeau.half)

    def long(self):
        """The sequence with its data as int64."""
        return self.to(dtype=flambeau.long)

    def int(self):
        """The sequence with its data as int32."""
        return self.to(dtype=flambeau.int)

    def short(self):
        """The sequence with its data as int16."""
        return self.to(dtype=flambeau.short)

    def char(self):
        """The sequence with its data as int8."""
        return self.to(dtype=flambeau.int8)

    def byte(self):
        """The sequence with its data as uint8."""
        return self.to(dtype=flambeau.uint8)

    @property
    def is_cuda(self) -> bool:
        """Are the data on a CUDA device? Never here."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Are the data in pinned memory?"""
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes `permutation`.

    Example:
        >>> nn.utils.rnn.invert_permutation(flambeau.tensor([2, 0, 1]))
        tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    output = flambeau.empty_like(permutation)
    output.scatter_(0, permutation, flambeau.arange(0, permutation.numel()))
    return output


def pack_padded_sequence(input: Tensor, lengths, batch_first: bool = False,
                         enforce_sorted: bool = True) -> PackedSequence:
    """Drop the padding of (T, B, \\*), or (B, T, \\*) if `batch_first`.

    Unless `enforce_sorted`, sequences need not come in decreasing length; they are sorted, and the
    result knows how to undo it.

    Example:
        >>> padded = flambeau.tensor([[1, 2, 0], [3, 0, 0], [4, 5, 6]])
        >>> nn.utils.rnn.pack_padded_sequence(
        ...     padded, [2, 1, 3], batch_first=True, enforce_sorted=False
        ... ).data
        tensor([4, 1, 3, 5, 2, 6])
    """
    if not isinstance(lengths, Tensor):
        lengths = flambeau.as_tensor(lengths, dtype=flambeau.int64, device="cpu")
    else:
        lengths = lengths.to("cpu")
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = flambeau.sort(lengths, descending=True)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    data, batch_sizes = _packed_by_lengths(input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, sorted_indices, None)


@bound_by(
    "_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)")
def _packed_by_lengths(input, lengths, batch_first):
    if lengths.dim() != 1:
        raise RuntimeError("'lengths' argument should be a 1D CPU int64 tensor, but got "
                           f"{lengths.dim()}D cpu Long tensor")
    lengths = lengths.long()
    if batch_first:
        input = input.transpose(0, 1)
    _check_lengths(input, lengths)
    steps = flambeau.arange(int(lengths[0]))
    present = steps.unsqueeze(1) < lengths
    return _packed(input, present), present.sum(1)


@one_node(name="PackPaddedSequenceBackward0")
def _packed(input, present):
    return input[: len(present)][present]


def _check_lengths(input, lengths):
    if lengths.numel() == 0 or input.size(1) == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if lengths.numel() != input.size(1):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {lengths.numel()} "
            f"(batch_size={input.size(1)})")
    if bool((lengths[1:] > lengths[:-1]).any()):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. "
            "You can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability.")
    if int(lengths[-1]) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0")
    if int(lengths[0]) > input.size(0):
        raise RuntimeError(
            f"Expected lengths to be at most {input.size(0)}, the length of the padded "
            f"sequences, but got {int(lengths[0])}")


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False,
                        padding_value: float = 0.0,
                        total_length: int | None = None) -> tuple[Tensor, Tensor]:
    """Padded sequences (T, B, \\*), or (B, T, \\*), and their lengths; undoes packing.

    Example:
        >>> packed = nn.utils.rnn.pack_sequence([flambeau.tensor([1, 2, 3]), flambeau.tensor([4])])
        >>> nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        (tensor([[1, 2, 3],
                [4, 0, 0]]), tensor([3, 1]))
    """
    max_length = sequence.batch_sizes.size(0)
    if total_length is not None:
        if total_length < max_length:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, "
                f"but got total_length={total_length} and max sequence length being {max_length}")
        max_length = total_length
    data, batch_sizes, _, unsorted_indices = sequence
    batch = int(batch_sizes[0])
    present = flambeau.arange(batch) < batch_sizes.unsqueeze(1)
    padded = data.new_full((max_length, batch, *data.shape[1:]), padding_value)
    padded[: present.size(0)][present] = data
    lengths = present.sum(0)
    if batch_first:
        padded = padded.transpose(0, 1)
    if unsorted_indices is not None:
        padded = padded.index_select(0 if batch_first else 1, unsorted_indices)
        lengths = lengths[unsorted_indices.cpu()]
    return padded, lengths


def pad_sequence(sequences, batch_first: bool = False, padding_value: float = 0.0,
                 padding_side: str = "right") -> Tensor:
    """Stack tensors of different lengths, with `padding_value` where one has ended.

    Example:
        >>> nn.utils.rnn.pad_sequence([flambeau.ones(1), flambeau.ones(3)], batch_first=True)
        tensor([[1., 0., 0.],
                [1., 1., 1.]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}")
    sequences = sequences.unbind(0) if isinstance(sequences, Tensor) else tuple(sequences)
    return flambeau._C._nn.pad_sequence(sequences, batch_first, padding_value, padding_side)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor,
                   batch_first: bool = False) -> list[Tensor]:
    """The tensors that `pad_sequence` was given.

    Unless `batch_first`, the padded tensor itself is transposed, in place, as PyTorch does it.
    """
    if not batch_first:
        padded_sequences.transpose_(0, 1)
    places = flambeau.arange(padded_sequences.shape[1], device=lengths.device)
    return [seq[places < length] for seq, length in zip(padded_sequences, lengths)]


def bind(optional, fn):
    """`fn(optional)`, or None of None."""
    return None if optional is None else fn(optional)


def pack_sequence(sequences, enforce_sorted: bool = True) -> PackedSequence:
    """Pack tensors of different lengths.

    Example:
        >>> a, b = flambeau.tensor([1, 2]), flambeau.tensor([3, 4, 5])
        >>> nn.utils.rnn.pack_sequence([a, b], enforce_sorted=False).data
        tensor([3, 1, 4, 2, 5])
    """
    lengths = flambeau.as_tensor([v.size(0) for v in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The tensors that `pack_sequence` was given."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
