"""Softmax over many classes, the rare ones in clusters."""

from __future__ import annotations

from collections import namedtuple
from itertools import pairwise

import flambeau
from flambeau import Tensor
from flambeau.nn import functional as F

from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """A log-softmax whose work grows with the frequency of classes.

    Classes, sorted by decreasing frequency, are cut at `cutoffs`: the first part and one entry for
    each later cluster form the head; a cluster i has a projection to in_features / div_value^(i+1)
    of its own. Calling it gives the log-probability of each target and the mean negative of them.

    Grave et al., Efficient softmax approximation for GPUs, ICML 2017.

    Example:
        >>> softmax = nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs=[5, 10])
        >>> output, loss = softmax(flambeau.ones(3, 8), flambeau.tensor([0, 7, 19]))
        >>> output.shape, softmax.log_prob(flambeau.ones(3, 8)).shape
        (torch.Size([3]), torch.Size([3, 20]))
    """

    in_features: int
    n_classes: int
    cutoffs: list[int]
    div_value: float
    head_bias: bool
    head: Linear
    tail: ModuleList

    def __init__(self, in_features: int, n_classes: int, cutoffs, div_value: float = 4.0,
                 head_bias: bool = False, device=None, dtype=None) -> None:
        factory = {"device": device, "dtype": dtype}
        super().__init__()
        cutoffs = list(cutoffs)
        if len(cutoffs) == 0:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        increasing = cutoffs == sorted(set(cutoffs))
        inside = min(cutoffs) > 0 and max(cutoffs) <= n_classes - 1
        if not (increasing and inside and all(int(c) == c for c in cutoffs)):
            raise ValueError("cutoffs should be a sequence of unique, positive integers sorted in "
                             "an increasing order, where each value is between 1 and n_classes-1")
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **factory)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // (div_value ** (i + 1)))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(Linear(in_features, hidden, bias=False, **factory),
                           Linear(hidden, size, bias=False, **factory))
            )

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.head.reset_parameters()
        for to_hidden, to_out in self.tail:
            to_hidden.reset_parameters()
            to_out.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        self._check_sizes(input_, target_)
        is_batched = target_.dim() > 0
        input = input_ if is_batched else input_.unsqueeze(0)
        target = target_ if is_batched else target_.unsqueeze(0)
        batch_size = target.size(0)
        output = input.new_zeros(batch_size)
        head_index = target.new_empty(batch_size)
        used_rows = 0
        bounds = [0, *self.cutoffs]
        for i, (low, high) in enumerate(pairwise(bounds)):
            mask = (target >= low) & (target < high)
            rows = mask.nonzero().squeeze()
            if rows.numel() == 0:
                continue
            if i == 0:
                head_index = head_index.index_copy(0, rows, target[mask])
            else:
                relative = target[mask] - low
                logprob = F.log_softmax(self.tail[i - 1](input.index_select(0, rows)), dim=1)
                head_index = head_index.index_fill(0, rows, self.shortlist_size + i - 1)
                picked = logprob.gather(1, relative.unsqueeze(1))
                output = output.index_copy(0, rows, picked.squeeze(1))
            used_rows += rows.numel()
        if used_rows != batch_size:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. ")
        head_logprob = F.log_softmax(self.head(input), dim=1)
        output = output + head_logprob.gather(1, head_index.unsqueeze(1)).squeeze()
        loss = (-output).mean()
        return _ASMoutput(output if is_batched else output.squeeze(0), loss)

    @staticmethod
    def _check_sizes(input, target):
        if target.dim() == 1:
            if input.size(0) != target.size(0):
                raise RuntimeError(
                    "Input and target should have the same size in the batch dimension.")
            if input.dim() != 2:
                raise RuntimeError("1D target tensor expects 2D input tensors, but found inputs "
                                   f"with size {input.size()}")
        elif target.dim() == 0:
            if input.dim() != 1:
                raise RuntimeError("0D target tensor expects 1D input tensors, but found inputs "
                                   f"with size {input.size()}")
        else:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")

    def _get_full_log_prob(self, input, head_output):
        """Log-probabilities of all classes, given the head's scores."""
        out = input.new_empty((head_output.size(0), self.n_classes))
        head_logprob = F.log_softmax(head_output, dim=1)
        out[:, : self.shortlist_size] = head_logprob[:, : self.shortlist_size]
        for i, (start, stop) in enumerate(pairwise(self.cutoffs)):
            within = F.log_softmax(self.tail[i](input), dim=1)
            cluster = head_logprob[:, self.shortlist_size + i].unsqueeze(1)
            out[:, start:stop] = within + cluster
        return out

    def log_prob(self, input: Tensor) -> Tensor:
        """Log-probabilities of all classes, (N, n_classes)."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each sample, without more work than needed."""
        head_output = self.head(input)
        output = flambeau.argmax(head_output, dim=1)
        in_tail = output >= self.shortlist_size
        if not in_tail.any():
            return output
        if in_tail.all():
            return flambeau.argmax(self._get_full_log_prob(input, head_output), dim=1)
        full = self._get_full_log_prob(input[in_tail], head_output[in_tail])
        output[in_tail] = flambeau.argmax(full, dim=1)
        return output
