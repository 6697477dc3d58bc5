r"""Losses.

With :math:`\ell_n` the loss of one element (or sample), `reduction` says what comes out:
``'none'`` all of them, ``'sum'`` their sum, ``'mean'`` their mean. `size_average` and `reduce` are
an old way to say the same.
"""

from __future__ import annotations

import warnings

from flambeau import Tensor
from flambeau._support.own_methods import adopt, define_in_subclasses
from flambeau._support.signatures import ANY_ARGUMENTS
from flambeau.nn import functional as F

from ._loss_bases import _Loss, _WeightedLoss
from .distance import PairwiseDistance
from .linear_cross_entropy import LinearCrossEntropyLoss

__all__ = ["BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss",
           "GaussianNLLLoss", "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss",
           "LinearCrossEntropyLoss", "MSELoss", "MarginRankingLoss", "MultiLabelMarginLoss",
           "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "NLLLoss2d", "PoissonNLLLoss",
           "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss"]


# ------------------------------------------------------------------ regression

class L1Loss(_Loss):
    r""":math:`\ell_n = |x_n - y_n|`.

    Example:
        >>> nn.L1Loss()(flambeau.tensor([1.0, 3.0]), flambeau.zeros(2))
        tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    r""":math:`\ell_n = (x_n - y_n)^2`.

    Example:
        >>> nn.MSELoss()(flambeau.tensor([1.0, 3.0]), flambeau.zeros(2))
        tensor(5.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    r""":math:`\ell_n = d^2/2\beta` where :math:`d = |x_n - y_n| < \beta`, else :math:`d - \beta/2`.

    Girshick, Fast R-CNN, ICCV 2015.

    Example:
        >>> nn.SmoothL1Loss()(flambeau.tensor([0.5, 3.0]), flambeau.zeros(2))
        tensor(1.3125)
    """

    def __init__(self, size_average=None, reduce=None, reduction: str = "mean",
                 beta: float = 1.0) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    r""":math:`\ell_n = d^2/2` where :math:`d = |x_n - y_n| \le \delta`, else
    :math:`\delta (d - \delta/2)`.

    Example:
        >>> nn.HuberLoss(delta=2.0)(flambeau.tensor([1.0, 3.0]), flambeau.zeros(2))
        tensor(2.2500)
    """

    __constants__ = ["reduction", "delta"]

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class PoissonNLLLoss(_Loss):
    r""":math:`\ell_n = e^{x_n} - y_n x_n` for a log rate, or :math:`x_n - y_n \ln(x_n + \epsilon)`;
    `full` adds Stirling's term :math:`y \ln y - y + \ln(2\pi y)/2`.

    Example:
        >>> nn.PoissonNLLLoss()(flambeau.zeros(2), flambeau.ones(2))
        tensor(1.)
    """

    __constants__ = ["log_input", "full", "eps", "reduction"]

    def __init__(self, log_input: bool = True, full: bool = False, size_average=None,
                 eps: float = 1e-8, reduce=None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(log_input, target, log_input=self.log_input, full=self.full,
                                  eps=self.eps, reduction=self.reduction)


class GaussianNLLLoss(_Loss):
    r""":math:`\ell_n = (\ln v_n + (x_n - y_n)^2/v_n)/2` with variances v of at least `eps`.

    Example:
        >>> nn.GaussianNLLLoss()(flambeau.ones(2), flambeau.zeros(2), flambeau.ones(2))
        tensor(0.5000)
    """

    __constants__ = ["full", "eps", "reduction"]

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps,
                                   reduction=self.reduction)


# ------------------------------------------------------------------ classification

class NLLLoss(_WeightedLoss):
    r""":math:`\ell_n = -w_{y_n} x_{n, y_n}` for log-probabilities x and class indices y.

    Targets of `ignore_index` do not count; ``'mean'`` divides by the sum of the weights.

    Shape: (C), (N, C) or (N, C, d1, …) and (), (N) or (N, d1, …).

    Example:
        >>> logp = flambeau.tensor([[0.25, 0.75]]).log()
        >>> nn.NLLLoss()(logp, flambeau.tensor([1]))
        tensor(0.2877)
    """

    __constants__ = ["ignore_index", "reduction"]

    def __init__(self, weight: Tensor | None = None, size_average=None, ignore_index: int = -100,
                 reduce=None, reduction: str = "mean") -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index,
                          reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """The old name of `NLLLoss` for images."""

    __signature__ = ANY_ARGUMENTS

    def __init__(self, weight: Tensor | None = None, size_average=None, ignore_index: int = -100,
                 reduce=None, reduction: str = "mean") -> None:
        warnings.warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in "
            "replacement and see https://pytorch.org/docs/main/nn.html#torch.nn.NLLLoss "
            "for more details.", FutureWarning, stacklevel=2)
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class CrossEntropyLoss(_WeightedLoss):
    r""":math:`\ell_n = -w_{y_n} \ln \mathrm{softmax}(x_n)_{y_n}` for scores x and class indices y,
    or :math:`-\sum_c w_c\, y_{n,c} \ln \mathrm{softmax}(x_n)_c` for probabilities y.

    `label_smoothing` mixes the target with the uniform distribution.

    Example:
        >>> nn.CrossEntropyLoss()(flambeau.zeros(1, 4), flambeau.tensor([2]))
        tensor(1.3863)
    """

    __constants__ = ["ignore_index", "reduction", "label_smoothing"]

    def __init__(self, weight: Tensor | None = None, size_average=None, ignore_index: int = -100,
                 reduce=None, reduction: str = "mean", label_smoothing: float = 0.0) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(input, target, weight=self.weight, ignore_index=self.ignore_index,
                               reduction=self.reduction, label_smoothing=self.label_smoothing)


class BCELoss(_WeightedLoss):
    r""":math:`\ell_n = -w_n (y_n \ln x_n + (1 - y_n) \ln(1 - x_n))`, with logarithms of at least
    -100.

    Example:
        >>> nn.BCELoss()(flambeau.tensor([0.5]), flambeau.tensor([1.0]))
        tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    r"""`BCELoss` of :math:`\sigma(x)`, computed without overflow; `pos_weight` scales the first
    term.

    Example:
        >>> nn.BCEWithLogitsLoss()(flambeau.tensor([0.0]), flambeau.tensor([1.0]))
        tensor(0.6931)
    """

    def __init__(self, weight: Tensor | None = None, size_average=None, reduce=None,
                 reduction: str = "mean", pos_weight: Tensor | None = None) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)
        self.weight: Tensor | None
        self.pos_weight: Tensor | None

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction)


class KLDivLoss(_Loss):
    r""":math:`\ell_n = y_n (\ln y_n - x_n)` for log-probabilities x; with `log_target` y is a
    logarithm too. ``'batchmean'`` divides the sum by the batch size, which is the divergence.

    Example:
        >>> nn.KLDivLoss(reduction="sum")(flambeau.zeros(1), flambeau.ones(1))
        tensor(0.)
    """

    def __init__(self, size_average=None, reduce=None, reduction: str = "mean",
                 log_target: bool = False) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class SoftMarginLoss(_Loss):
    r""":math:`\ell_n = \ln(1 + e^{-y_n x_n})` for targets of 1 and -1.

    Example:
        >>> nn.SoftMarginLoss()(flambeau.zeros(1), flambeau.ones(1))
        tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class HingeEmbeddingLoss(_Loss):
    r""":math:`\ell_n = x_n` where y is 1, :math:`\max(0, m - x_n)` where it is -1, with margin m.

    Example:
        >>> nn.HingeEmbeddingLoss()(flambeau.tensor([0.25]), flambeau.tensor([-1.0]))
        tensor(0.7500)
    """

    __constants__ = ["margin", "reduction"]

    def __init__(self, margin: float = 1.0, size_average=None, reduce=None,
                 reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    r""":math:`\ell_n = \sum_{ij} \max(0, 1 - (x_{y_j} - x_i)) / C`, with j over the target classes
    (up to the first -1) and i over all others.

    Example:
        >>> scores = flambeau.tensor([[0.1, 0.2, 0.4, 0.8]])
        >>> nn.MultiLabelMarginLoss()(scores, flambeau.tensor([[3, 0, -1, 1]]))
        tensor(0.8500)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    r"""The mean over classes of the binary cross entropies of :math:`\sigma(x)`.

    Example:
        >>> nn.MultiLabelSoftMarginLoss()(flambeau.zeros(1, 3), flambeau.ones(1, 3))
        tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight,
                                             reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    r""":math:`\ell_n = \sum_{i \ne y_n} \max(0, m - x_{y_n} + x_i)^p / C` for p of 1 or 2.

    Example:
        >>> nn.MultiMarginLoss()(flambeau.tensor([[0.1, 0.2, 0.4, 0.8]]), flambeau.tensor([3]))
        tensor(0.3250)
    """

    __constants__ = ["p", "margin", "reduction"]

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
                 size_average=None, reduce=None, reduction: str = "mean") -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(
                f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D "
                "instead")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(input, target, p=self.p, margin=self.margin, weight=self.weight,
                                   reduction=self.reduction)


# ------------------------------------------------------------------ ranking and embedding

@define_in_subclasses("__init__")
class _MarginLoss(_Loss):
    __constants__ = ["margin", "reduction"]

    def __init__(self, margin: float = 0.0, size_average=None, reduce=None,
                 reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class CosineEmbeddingLoss(_MarginLoss):
    r""":math:`\ell_n = 1 - \cos(x_1, x_2)` where y is 1, :math:`\max(0, \cos(x_1, x_2) - m)` where
    it is -1.

    Example:
        >>> x = flambeau.ones(1, 2)
        >>> nn.CosineEmbeddingLoss(margin=0.5)(x, x, -flambeau.ones(1))
        tensor(0.5000)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin,
                                       reduction=self.reduction)


class MarginRankingLoss(_MarginLoss):
    r""":math:`\ell_n = \max(0, -y_n (x_{1n} - x_{2n}) + m)`: y = 1 wants the first to rank higher.

    Example:
        >>> nn.MarginRankingLoss()(flambeau.zeros(1), flambeau.ones(1), flambeau.ones(1))
        tensor(1.)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin,
                                     reduction=self.reduction)


class TripletMarginLoss(_Loss):
    r""":math:`\ell_n = \max(0, d(a, p) - d(a, n) + m)` with the p-norm as distance; `swap` takes
    the smaller of d(a, n) and d(p, n).

    Balntas et al., Learning local feature descriptors with triplets, BMVC 2016.

    Example:
        >>> near, far = flambeau.zeros(1, 2), flambeau.tensor([[3.0, 4.0]])
        >>> nn.TripletMarginLoss()(near, near, far)
        tensor(0.)
    """

    __constants__ = ["margin", "p", "eps", "swap", "reduction"]

    def __init__(self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
                 size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(anchor, positive, negative, margin=self.margin, p=self.p,
                                     eps=self.eps, swap=self.swap, reduction=self.reduction)


class TripletMarginWithDistanceLoss(_Loss):
    """`TripletMarginLoss` with any distance; the default is `PairwiseDistance`.

    Example:
        >>> loss = nn.TripletMarginWithDistanceLoss(
        ...     distance_function=lambda x, y: 1.0 - flambeau.cosine_similarity(x, y)
        ... )
        >>> loss(flambeau.ones(1, 2), flambeau.ones(1, 2), -flambeau.ones(1, 2))
        tensor(0.)
    """

    __constants__ = ["margin", "swap", "reduction"]

    def __init__(self, *, distance_function=None, margin: float = 1.0, swap: bool = False,
                 reduction: str = "mean"):
        super().__init__(size_average=None, reduce=None, reduction=reduction)
        if margin <= 0:
            raise ValueError("TripletMarginWithDistanceLoss: expected margin to be greater than 0, "
                             f"got {margin} instead")
        self.distance_function = distance_function or PairwiseDistance()
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function,
            margin=self.margin, swap=self.swap, reduction=self.reduction)


# ------------------------------------------------------------------ sequences

class CTCLoss(_Loss):
    """The negative log-probability of a label sequence, summed over all its alignments.

    Shape: log-probabilities (T, N, C) or (T, C), targets (N, S) or all in one row, lengths (N).
    `blank` is the class of no label; `zero_infinity` replaces impossible alignments by 0.
    Graves et al., ICML 2006.

    Example:
        >>> logp = flambeau.zeros(3, 1, 2).log_softmax(2)
        >>> nn.CTCLoss()(logp, flambeau.tensor([[1]]), (3,), (1,))
        tensor(0.2877)
    """

    __constants__ = ["blank", "reduction"]

    def __init__(self, blank: int = 0, reduction: str = "mean",
                 zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor,
                target_lengths: Tensor) -> Tensor:
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank,
                          self.reduction, self.zero_infinity)


adopt(globals(), ("nn.modules._loss_bases", "nn.modules.linear_cross_entropy"))

for _loss in (L1Loss, MSELoss, BCELoss, KLDivLoss, SmoothL1Loss, SoftMarginLoss,
              MultiLabelMarginLoss, MultiLabelSoftMarginLoss):
    _loss.__constants__ = ["reduction"]
