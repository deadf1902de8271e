"""jax.scipy.ndimage: values between the elements of an array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.missing_names import Lookup, raising
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import tensor_of
from jitgrad.scipy.ndimage import between_elements

_MODES = {"constant": "grid-constant", "wrap": "grid-wrap", "nearest": "nearest", "mirror": "mirror", "reflect": "reflect"}


def map_coordinates(input: Any, coordinates: Any, order: int, mode: str = "constant", cval: Any = 0.0) -> Tensor:
    """The values of ``input`` at ``coordinates``: the nearest element (``order`` 0), or linear between elements (1).

    Beyond the edges "constant" and "wrap" are SciPy's "grid-constant" and "grid-wrap". Gradients flow to both arrays.

    Raises:
        ArgumentError: another order or mode. ShapeError: not one array of coordinates for each axis.
    """
    if order not in (0, 1) or mode not in _MODES:
        given = f"order={shown(order)}, mode={shown(mode)}"
        raise ArgumentError(f"map_coordinates: order must be 0 or 1, and mode one of {', '.join(_MODES)}; got {given}")
    return between_elements(tensor_of(input), [tensor_of(c) for c in coordinates], order, _MODES[mode], cval, halves_up=False)


if not TYPE_CHECKING:
    __getattr__: Lookup = raising("jitgrad.jax.scipy.ndimage", globals())
