"""Look-up tables."""

from __future__ import annotations

import flambeau
from flambeau import Tensor
from flambeau._support.own_methods import define_in_subclasses
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.parameter import Parameter

from .module import Module
from .utils import _unusual

__all__ = ["Embedding", "EmbeddingBag"]


@define_in_subclasses("reset_parameters")
class _Table(Module):
    """A weight of (num_embeddings, embedding_dim), drawn from N(0, 1), and its padding row."""


    def _make_weight(self, given, shape, factory, freeze=False):
        if given is None:
            self.weight = Parameter(flambeau.empty(shape, **factory), requires_grad=not freeze)
            self.reset_parameters()
            return
        if list(given.shape) != list(shape):
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        if isinstance(self, Embedding):
            self.weight = Parameter(given, requires_grad=not freeze)
        else:
            self.weight = Parameter(given)

    def _checked_padding_idx(self, padding_idx, num_embeddings):
        if padding_idx is None:
            return None
        if padding_idx > 0:
            inside = padding_idx < num_embeddings
        else:
            inside = padding_idx >= -num_embeddings
        if not inside:
            raise AssertionError(self._padding_error)
        return padding_idx if padding_idx >= 0 else num_embeddings + padding_idx

    def reset_parameters(self) -> None:
        """Draw the table anew; the row of `padding_idx` is zero."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with flambeau.no_grad():
                self.weight[self.padding_idx].fill_(0)

    @staticmethod
    def _check_pretrained(embeddings):
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        return embeddings.shape


class Embedding(_Table):
    """Rows of a table by index: :math:`y = W[i]`.

    The row of `padding_idx` starts as zero and gets no gradient. Rows whose norm exceeds
    `max_norm` are scaled down, in place, when they are used. `sparse` asks for a sparse gradient.

    Shape: indices of any shape (\\*) → (\\*, embedding_dim).

    Example:
        >>> table = nn.Embedding(10, 3, padding_idx=0)
        >>> table(flambeau.tensor([[0, 2], [4, 0]])).shape
        torch.Size([2, 2, 3])
    """

    __constants__ = ["num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type",
                     "scale_grad_by_freq", "sparse"]
    _padding_error = "Padding_idx must be within num_embeddings"

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
                 max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, sparse: bool = False,
                 _weight: Tensor | None = None, _freeze: bool = False, device=None,
                 dtype=None) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = self._checked_padding_idx(padding_idx, num_embeddings)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        factory = {"device": device, "dtype": dtype}
        self._make_weight(_weight, (num_embeddings, embedding_dim), factory, _freeze)
        self.sparse = sparse

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
                           self.scale_grad_by_freq, self.sparse)

    def extra_repr(self) -> str:
        sparse = ", sparse=True" if self.sparse is not False else ""
        return f"{self.num_embeddings}, {self.embedding_dim}" + _unusual(
            self, padding_idx=None, max_norm=None, norm_type=2, scale_grad_by_freq=False) + sparse

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, padding_idx=None, max_norm=None,
                        norm_type=2.0, scale_grad_by_freq=False, sparse=False):
        """A layer on a given table, which is not learned unless `freeze` is False.

        Example:
            >>> table = nn.Embedding.from_pretrained(flambeau.eye(3))
            >>> table(flambeau.tensor([1]))
            tensor([[0., 1., 0.]])
        """
        rows, columns = cls._check_pretrained(embeddings)
        return cls(num_embeddings=rows, embedding_dim=columns, _weight=embeddings, _freeze=freeze,
                   padding_idx=padding_idx, max_norm=max_norm, norm_type=norm_type,
                   scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


class EmbeddingBag(_Table):
    """Sums, means or maxima of the rows of bags of indices, without the rows in between.

    A bag is a row of a two-dimensional input, or what lies between two `offsets` in a
    one-dimensional one. `per_sample_weights` scales the rows (mode ``'sum'``).

    Example:
        >>> bags = nn.EmbeddingBag.from_pretrained(flambeau.eye(3), mode="sum")
        >>> bags(flambeau.tensor([0, 1, 1, 2]), offsets=flambeau.tensor([0, 3]))
        tensor([[1., 2., 0.],
                [0., 0., 1.]])
    """

    __constants__ = ["num_embeddings", "embedding_dim", "max_norm", "norm_type",
                     "scale_grad_by_freq", "mode", "sparse", "include_last_offset", "padding_idx"]
    _padding_error = "padding_idx must be within num_embeddings"

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None,
                 norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
                 sparse: bool = False, _weight: Tensor | None = None,
                 include_last_offset: bool = False, padding_idx: int | None = None, device=None,
                 dtype=None) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = self._checked_padding_idx(padding_idx, num_embeddings)
        factory = {"device": device, "dtype": dtype}
        self._make_weight(_weight, (num_embeddings, embedding_dim), factory)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(self, input: Tensor, offsets: Tensor | None = None,
                per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type,
                               self.scale_grad_by_freq, self.mode, self.sparse, per_sample_weights,
                               self.include_last_offset, self.padding_idx)

    def extra_repr(self) -> str:
        limits = _unusual(self, max_norm=None, norm_type=2, scale_grad_by_freq=False)
        return (f"{self.num_embeddings}, {self.embedding_dim}{limits}, mode={self.mode!r}"
                + _unusual(self, padding_idx=None))

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, max_norm=None, norm_type=2.0,
                        scale_grad_by_freq=False, mode="mean", sparse=False,
                        include_last_offset=False, padding_idx=None):
        """A layer on a given table, which is not learned unless `freeze` is False."""
        rows, columns = cls._check_pretrained(embeddings)
        layer = cls(num_embeddings=rows, embedding_dim=columns, _weight=embeddings,
                    max_norm=max_norm, norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq,
                    mode=mode, sparse=sparse, include_last_offset=include_last_offset,
                    padding_idx=padding_idx)
        layer.weight.requires_grad = not freeze
        return layer
