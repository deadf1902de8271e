"""Losses as modules; their arguments are keywords of the functions in `jitgrad.nn.functional`."""

from __future__ import annotations

from typing import Any

from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.nn import functional
from jitgrad.nn.module import Module
from jitgrad.nn.old_reduction import with_old_reduction
from jitgrad.ops.creation import asarray


class _Loss(Module):
    """Base class: a reduction, and further options of the loss."""

    @with_old_reduction
    def __init__(self, reduction: str = "mean", **options: Any) -> None:
        allowed = ("mean", "sum", "none", *(("batchmean",) if isinstance(self, KLDivLoss) else ()))
        if reduction not in allowed:
            name = type(self).__name__
            raise ArgumentError(f"{name}: reduction must be one of {', '.join(allowed)}, got {shown(reduction)}")
        self.reduction = reduction
        self.__dict__.update(options)

    def _register_weights(self, **weights: Any) -> None:
        """Constant tensors, which move with the module and are not saved."""
        for name, weight in weights.items():
            self.register_buffer(name, None if weight is None else asarray(weight), persistent=False)

    def extra_repr(self) -> str:
        return f"reduction={self.reduction!r}"


class MSELoss(_Loss):
    """The squared distance."""

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """The distance."""

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Quadratic below ``beta``, linear above."""

    beta: float

    @with_old_reduction
    def __init__(self, *, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction, beta=beta)

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Quadratic below ``delta``, linear above, with slope ``delta``."""

    delta: float

    @with_old_reduction
    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction, delta=delta)

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.huber_loss(input, target, self.reduction, self.delta)


class CrossEntropyLoss(_Loss):
    """The cross entropy of ``softmax(input)`` over axis 1 with labels, or with probabilities."""

    weight: Tensor | None
    ignore_index: int
    label_smoothing: float

    @with_old_reduction
    def __init__(
        self, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0
    ) -> None:
        super().__init__(reduction, ignore_index=ignore_index, label_smoothing=label_smoothing)
        self._register_weights(weight=weight)

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class NLLLoss(_Loss):
    """Minus the log-probability of each label."""

    weight: Tensor | None
    ignore_index: int

    @with_old_reduction
    def __init__(self, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction, ignore_index=ignore_index)
        self._register_weights(weight=weight)

    def forward(self, input: Any, target: Any) -> Tensor:
        more = {"ignore_index": self.ignore_index, "reduction": self.reduction}
        return functional.nll_loss(input, target, self.weight, **more)  # type: ignore[arg-type]


class BCELoss(_Loss):
    """Binary cross entropy of probabilities."""

    weight: Tensor | None

    @with_old_reduction
    def __init__(self, weight: Any = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self._register_weights(weight=weight)

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of ``sigmoid(input)``."""

    weight: Tensor | None
    pos_weight: Tensor | None

    @with_old_reduction
    def __init__(self, weight: Any = None, *, reduction: str = "mean", pos_weight: Any = None) -> None:
        super().__init__(reduction)
        self._register_weights(weight=weight, pos_weight=pos_weight)

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence, for log-probabilities ``input``."""

    log_target: bool

    @with_old_reduction
    def __init__(self, *, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction, log_target=log_target)

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class CosineEmbeddingLoss(_Loss):
    """Of two embeddings that should point the same way (target 1) or not (-1)."""

    margin: float

    @with_old_reduction
    def __init__(self, margin: float = 0.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction, margin=margin)

    def forward(self, input1: Any, input2: Any, target: Any) -> Tensor:
        return functional.cosine_embedding_loss(input1, input2, target, self.margin, self.reduction)


class TripletMarginLoss(_Loss):
    """Of an anchor that should be nearer to one embedding than to another."""

    margin: float
    p: float
    eps: float
    swap: bool

    @with_old_reduction
    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, *, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction, margin=margin, p=p, eps=eps, swap=swap)

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Tensor:
        more = (self.margin, self.p, self.eps, self.swap, self.reduction)
        return functional.triplet_margin_loss(anchor, positive, negative, *more)


class MarginRankingLoss(_Loss):
    """Of two scores of which the first should be larger (target 1) or smaller (-1)."""

    margin: float

    @with_old_reduction
    def __init__(self, margin: float = 0.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction, margin=margin)

    def forward(self, input1: Any, input2: Any, target: Any) -> Tensor:
        return functional.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class HingeEmbeddingLoss(_Loss):
    """Of distances that should be small (target 1) or above ``margin`` (-1)."""

    margin: float

    @with_old_reduction
    def __init__(self, margin: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(reduction, margin=margin)

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.hinge_embedding_loss(input, target, self.margin, self.reduction)


class SoftMarginLoss(_Loss):
    """``log(1 + exp(-target * input))``."""

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.soft_margin_loss(input, target, self.reduction)


class MultiMarginLoss(_Loss):
    """The multi-class hinge."""

    weight: Tensor | None
    p: int
    margin: float

    @with_old_reduction
    def __init__(self, p: int = 1, margin: float = 1.0, weight: Any = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction, p=p, margin=margin)
        self._register_weights(weight=weight)

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.multi_margin_loss(input, target, self.p, self.margin, self.weight, self.reduction)


class MultiLabelSoftMarginLoss(_Loss):
    """Binary cross entropy of ``sigmoid(input)``, the mean over classes."""

    weight: Tensor | None

    @with_old_reduction
    def __init__(self, weight: Any = None, *, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self._register_weights(weight=weight)

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.multilabel_soft_margin_loss(input, target, self.weight, self.reduction)


class MultiLabelMarginLoss(_Loss):
    """The hinge between each label of a row and all other classes; labels come first in the target's rows, then -1."""

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.multilabel_margin_loss(input, target, reduction=self.reduction)


class TripletMarginWithDistanceLoss(_Loss):
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)``; ``d`` is pairwise_distance unless given."""

    margin: float
    swap: bool

    @with_old_reduction
    def __init__(
        self, *, distance_function: Any = None, margin: float = 1.0, swap: bool = False, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction, margin=margin, swap=swap)
        self.distance_function: Any = distance_function

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Tensor:
        more: dict[str, Any] = {"margin": self.margin, "swap": self.swap, "reduction": self.reduction}
        distance = self.distance_function
        return functional.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=distance, **more
        )


class CTCLoss(_Loss):
    """Minus the log-probability of label sequences over all their alignments with log_probs [time, n, classes]."""

    blank: int
    zero_infinity: bool

    @with_old_reduction
    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction, blank=blank, zero_infinity=zero_infinity)

    def forward(self, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any) -> Tensor:
        lengths = (input_lengths, target_lengths)
        return functional.ctc_loss(log_probs, targets, *lengths, self.blank, self.reduction, self.zero_infinity)


class PoissonNLLLoss(_Loss):
    """The negative log-likelihood of Poisson counts."""

    log_input: bool
    full: bool
    eps: float

    @with_old_reduction
    def __init__(
        self, log_input: bool = True, full: bool = False, eps: float = 1e-8, *, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction, log_input=log_input, full=full, eps=eps)

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.poisson_nll_loss(input, target, self.log_input, self.full, self.eps, self.reduction)


class GaussianNLLLoss(_Loss):
    """The negative log-likelihood of normal numbers of given variance."""

    full: bool
    eps: float

    @with_old_reduction
    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction, full=full, eps=eps)

    def forward(self, input: Any, target: Any, var: Any) -> Tensor:
        return functional.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)
