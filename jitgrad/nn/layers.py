"""Linear and bilinear maps, embeddings, dropout and distances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitgrad.autograd.modes import no_grad
from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.nn import functional
from jitgrad.nn.init import normal_, normal_parameter, uniform_parameter
from jitgrad.nn.module import Module, Parameter
from jitgrad.nn.resetting import UniformStart
from jitgrad.ops.arithmetic import add, divide, multiply
from jitgrad.ops.comparison import greater, logical_and, where
from jitgrad.ops.creation import asarray, zeros
from jitgrad.ops.distances import cosine_similarity, pairwise_distance
from jitgrad.ops.inplace import assign
from jitgrad.ops.linalg import linear
from jitgrad.ops.neural import embedding
from jitgrad.ops.norms import norm
from jitgrad.ops.placement import placing
from jitgrad.ops.random import Generator


class Linear(UniformStart):
    """``x @ weight.T + bias`` for x [..., in_features], weight [out_features, in_features], bias
    [out_features]."""

    weight: Tensor
    bias: Tensor | None

    @placing
    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        self.in_features: int = in_features
        self.out_features: int = out_features
        self.weight = uniform_parameter((out_features, in_features), in_features, dtype)
        self.register_parameter("bias", uniform_parameter((out_features,), in_features, dtype) if bias else None)
        self._start()

    def _fan_in(self) -> int:
        return self.in_features

    def forward(self, x: Any) -> Tensor:
        return linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(UniformStart):
    """``x1 @ weight[k] @ x2 + bias[k]`` for each output k: weight [out_features, in1_features, in2_features]."""

    weight: Tensor
    bias: Tensor | None

    @placing
    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.in1_features: int = in1_features
        self.in2_features: int = in2_features
        self.out_features: int = out_features
        self.weight = uniform_parameter((out_features, in1_features, in2_features), in1_features, dtype)
        self.register_parameter("bias", uniform_parameter((out_features,), in1_features, dtype) if bias else None)
        self._start()

    def _fan_in(self) -> int:
        return self.in1_features

    def forward(self, x1: Any, x2: Any) -> Tensor:
        return functional.bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{self.in1_features}, {self.in2_features}, {self.out_features}"


class Embedding(Module):
    """The rows of ``weight`` [num_embeddings, embedding_dim] at integer indices.

    Row ``padding_idx`` starts as zeros and gets no gradient. A row whose norm is above ``max_norm`` is shortened to it, in
    place, when it is looked up. Gradients are dense, whatever ``sparse`` says.

    Raises:
        ArgumentError: ``scale_grad_by_freq`` is true.
    """

    weight: Tensor

    @placing
    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if scale_grad_by_freq:
            raise ArgumentError(f"{type(self).__name__}: scale_grad_by_freq=True is not supported")
        self.num_embeddings: int = num_embeddings
        self.embedding_dim: int = embedding_dim
        self.padding_idx: int | None = padding_idx
        self.max_norm: float | None = max_norm
        self.norm_type: float = norm_type
        self.weight = normal_parameter((num_embeddings, embedding_dim), dtype) if _weight is None else Parameter(_weight)
        if _weight is None:
            self._clear_padding()
        if type(self).reset_parameters is not Embedding.reset_parameters:
            self.reset_parameters()

    def _clear_padding(self) -> None:
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0.0

    def reset_parameters(self) -> None:
        """Draw the weight anew. `__init__` calls it if a subclass has its own."""
        normal_(self.weight)
        self._clear_padding()

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None) -> Embedding:
        """A layer with ``embeddings`` [num_embeddings, embedding_dim] as its weight, which is trained unless frozen."""
        rows, columns = asarray(embeddings).shape
        layer = cls(rows, columns)
        layer.padding_idx = padding_idx
        layer.register_parameter("weight", Parameter(embeddings, requires_grad=not freeze))
        return layer

    def _shorten(self, x: Any) -> None:
        """Bring the rows of ``weight`` that ``x`` looks up to norms of at most ``max_norm``."""
        if self.max_norm is None:
            return
        with no_grad():
            norms = norm(self.weight, self.norm_type, axis=1, keepdims=True)
            looked_up = zeros((self.num_embeddings, 1), dtype=bool, device=self.weight.device)
            looked_up[asarray(x)] = True
            long = logical_and(looked_up, greater(norms, self.max_norm))
            shorter = multiply(self.weight, divide(self.max_norm, add(norms, 1e-7)))  # torch's, against division by 0
            assign(self.weight, where(long, shorter, self.weight))

    def forward(self, x: Any) -> Tensor:
        self._shorten(x)
        return embedding(x, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"


class EmbeddingBag(Embedding):
    """The sum, mean or largest of the rows of ``weight`` [num_embeddings, embedding_dim] of each bag of indices."""

    @placing
    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight, dtype=dtype
        )
        self.mode: str = mode
        self.include_last_offset: bool = include_last_offset

    def forward(self, x: Any, offsets: Any = None, per_sample_weights: Any = None) -> Tensor:
        self._shorten(x)
        more: dict[str, Any] = {"per_sample_weights": per_sample_weights, "padding_idx": self.padding_idx}
        more["include_last_offset"] = self.include_last_offset
        return functional.embedding_bag(x, self.weight, offsets, mode=self.mode, **more)


class Dropout(Module):
    """Drops elements with probability ``p`` in training, and scales others by ``1 / (1 - p)``."""

    drop: Callable[..., Tensor] = staticmethod(functional.dropout)

    def __init__(self, p: float = 0.5, inplace: bool = False, *, generator: Generator | None = None) -> None:
        if not 0 <= p <= 1:
            raise ArgumentError(f"{type(self).__name__}: a probability is between 0 and 1, got {p}")
        self.p: float = p
        self.inplace: bool = inplace
        self.generator: Generator | None = generator

    def forward(self, x: Any) -> Tensor:
        return self.drop(x, self.p, self.training, self.inplace, generator=self.generator)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Dropout1d(Dropout):
    """Drops whole channels of [n, channels, length]."""

    drop: Callable[..., Tensor] = staticmethod(functional.dropout1d)


class Dropout2d(Dropout):
    """Drops whole channels of [n, channels, h, w]."""

    drop: Callable[..., Tensor] = staticmethod(functional.dropout2d)


class Dropout3d(Dropout):
    """Drops whole channels of [n, channels, d, h, w]."""

    drop: Callable[..., Tensor] = staticmethod(functional.dropout3d)


class AlphaDropout(Dropout):
    """Sets elements to selu's left limit with probability ``p`` in training; mean 0 and variance 1 stay."""

    drop: Callable[..., Tensor] = staticmethod(functional.alpha_dropout)


class FeatureAlphaDropout(Dropout):
    """:class:`AlphaDropout` of whole channels of [n, channels, ...]."""

    drop: Callable[..., Tensor] = staticmethod(functional.feature_alpha_dropout)


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along ``dim``."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        self.dim: int = dim
        self.eps: float = eps

    def forward(self, x: Any, y: Any) -> Tensor:
        return cosine_similarity(x, y, self.dim, self.eps)


class PairwiseDistance(Module):
    """The norm of order ``p`` of differences along the last axis."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        self.p: float = p
        self.eps: float = eps
        self.keepdim: bool = keepdim

    def forward(self, x: Any, y: Any) -> Tensor:
        return pairwise_distance(x, y, self.p, self.eps, self.keepdim)
