"""Layers that learn how many inputs they have from their first call, and are ordinary ones from then on."""

from __future__ import annotations

from inspect import signature
from typing import Any, ClassVar

from jitgrad.autograd.modes import no_grad
from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import ShapeError, TraceError
from jitgrad.core.tensor import Tensor
from jitgrad.nn import convolution, layers, norm
from jitgrad.nn.module import Module
from jitgrad.ops.creation import asarray, empty
from jitgrad.ops.placement import beside


class _Lazy(Module):
    """A layer without its first argument, which the first input gives; its parameters are empty until then.

    They stay the same objects, so an optimiser may have them already. A compiled function, or a state that is loaded,
    needs sizes: call the layer once before.

    Attributes:
        cls_to_become: the class of the layer after the first call.
        axis: where inputs have the number that the layer needs.
    """

    cls_to_become: ClassVar[Any]
    axis: ClassVar[int] = 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        groups = signature(self.cls_to_become).bind(1, *args, **kwargs).arguments.get("groups", 1)
        self.cls_to_become.__init__(self, groups, *args, **kwargs)
        self._rest: tuple[Any, ...] = (args, kwargs)
        with no_grad():
            for parameter in self.parameters():
                parameter.data = empty((0,), dtype=parameter.dtype, device=parameter.device)  # type: ignore[attr-defined]

    def has_uninitialized_params(self) -> bool:
        """True: after the first call the layer is of another class."""
        return True

    def forward(self, *args: Any) -> Any:
        given = asarray(args[0])
        if current_interpreter.get().tracing:
            raise TraceError(
                f"{type(self).__name__} has no sizes yet: call the module once, with an input, before compiled functions and "
                "transforms"
            )
        if given.ndim < 2 and self.axis != -1:
            raise ShapeError(f"{type(self).__name__}: expected [n, channels, ...], got {given.aval}")
        (rest, options), own = self._rest, {name: p for name, p in self.named_parameters()}
        with beside(given):
            made = self.cls_to_become(given.shape[self._place(given)], *rest, **options)
        for name, parameter in made.named_parameters():
            own[name].data = parameter.data  # type: ignore[attr-defined]
        for name, value in vars(made).items():
            if not isinstance(value, Tensor) and name != "training" and not name.startswith("_"):
                setattr(self, name, value)
        for name, buffer in made.named_buffers():
            setattr(self, name, buffer)
        self.__class__ = self.cls_to_become
        del self._rest
        return self.forward(*args)

    def _place(self, given: Tensor) -> int:
        """The axis of channels, which is the first where there are no batches."""
        unbatched = getattr(self, "axes", None)
        return 0 if unbatched is not None and given.ndim == unbatched + 1 else self.axis


class LazyLinear(_Lazy, layers.Linear):
    """`Linear(in_features, out_features, bias)` without ``in_features``."""

    cls_to_become = layers.Linear
    axis = -1


class LazyConv1d(_Lazy, convolution.Conv1d):
    """`Conv1d` without ``in_channels``."""

    cls_to_become = convolution.Conv1d


class LazyConv2d(_Lazy, convolution.Conv2d):
    """`Conv2d` without ``in_channels``."""

    cls_to_become = convolution.Conv2d


class LazyConv3d(_Lazy, convolution.Conv3d):
    """`Conv3d` without ``in_channels``."""

    cls_to_become = convolution.Conv3d


class LazyConvTranspose1d(_Lazy, convolution.ConvTranspose1d):
    """`ConvTranspose1d` without ``in_channels``."""

    cls_to_become = convolution.ConvTranspose1d


class LazyConvTranspose2d(_Lazy, convolution.ConvTranspose2d):
    """`ConvTranspose2d` without ``in_channels``."""

    cls_to_become = convolution.ConvTranspose2d


class LazyConvTranspose3d(_Lazy, convolution.ConvTranspose3d):
    """`ConvTranspose3d` without ``in_channels``."""

    cls_to_become = convolution.ConvTranspose3d


class LazyBatchNorm1d(_Lazy, norm.BatchNorm1d):
    """`BatchNorm1d` without ``num_features``."""

    cls_to_become = norm.BatchNorm1d


class LazyBatchNorm2d(_Lazy, norm.BatchNorm2d):
    """`BatchNorm2d` without ``num_features``."""

    cls_to_become = norm.BatchNorm2d


class LazyBatchNorm3d(_Lazy, norm.BatchNorm3d):
    """`BatchNorm3d` without ``num_features``."""

    cls_to_become = norm.BatchNorm3d
