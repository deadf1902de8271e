"""autograd.extend: functions of NumPy arrays with gradients of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import numpy as np

from jitgrad.core.context import grad_enabled
from jitgrad.core.errors import ArgumentError, AutogradError, require_function
from jitgrad.core.tensor import Tensor
from jitgrad.ops.user.opaque import CustomOp, custom_op

_Maker = Callable[..., Callable[[Any], Any]]


class primitive:
    """``f_raw``, a function of NumPy arrays, as an op; `defvjp` gives its gradient.

    Arrays and tensors among the positional arguments are operands; numbers, texts and all keywords are options. It does
    not fuse: see `jitgrad.custom_op`.
    """

    def __init__(self, f_raw: Callable[..., Any]) -> None:
        require_function("primitive", f_raw)
        update_wrapper(self, f_raw)
        self.fun: Callable[..., Any] = f_raw
        self._makers: dict[int, _Maker | None] | None = None
        self._ops: dict[Any, CustomOp] = {}
        self._name: str = getattr(f_raw, "__name__", "primitive")

    def called_functions(self) -> tuple[Any, ...]:
        """The functions that a gradient runs."""
        return tuple((self._makers or {}).values())

    def define(self, makers: dict[int, _Maker | None]) -> None:
        """Give for each position of an argument ``maker(result, *args, **options)``, which gives ``g -> gradient``.

        Raises ArgumentError if there are some already.
        """
        if self._makers is not None:
            raise ArgumentError(f"primitive {self._name!r} has a gradient already: decorate the function anew")
        self._makers = makers
        self._ops.clear()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        places = tuple(k for k, x in enumerate(args) if isinstance(x, (Tensor, np.ndarray, np.generic)))
        for k in places:
            self._check(k, args[k])
        rest = tuple(None if k in places else x for k, x in enumerate(args))
        return self._op(places, rest, kwargs)(*[args[k] for k in places])

    def _check(self, k: int, x: Any) -> None:
        if self._makers is None or k in self._makers:
            return
        if isinstance(x, Tensor) and x.requires_grad and grad_enabled.get():
            raise AutogradError(
                f"primitive {self._name!r} has no gradient for argument {k}, which requires grad: give defvjp a function for it, "
                "or None for a gradient of zero"
            )

    def _op(self, places: tuple[int, ...], rest: tuple[Any, ...], options: dict[str, Any]) -> CustomOp:
        """The op for these options, made once if they can be hashed."""
        try:
            key = (places, tuple(map(_typed, rest)), tuple((k, _typed(v)) for k, v in sorted(options.items())))
            known = self._ops.get(key)
        except TypeError:
            return self._new_op(places, rest, options)
        if known is None:
            known = self._ops[key] = self._new_op(places, rest, options)
        return known

    def _new_op(self, places: tuple[int, ...], rest: tuple[Any, ...], options: dict[str, Any]) -> CustomOp:
        def filled(operands: Sequence[Any]) -> list[Any]:
            full = list(rest)
            for k, x in zip(places, operands, strict=True):
                full[k] = x
            return full

        def forward(*operands: Any) -> Any:
            return self.fun(*filled(operands), **options)

        def pulled(g: Any, out: Any, *operands: Any) -> tuple[Any, ...]:
            makers = [(self._makers or {}).get(k) for k in places]
            full = filled(operands)
            return tuple(None if maker is None else maker(out, *full, **options)(g) for maker in makers)

        made: CustomOp = custom_op(forward, vjp=None if self._makers is None else pulled, name=self._name)
        return made


def _typed(x: Any) -> Any:
    """A key by which 1, 1.0 and True differ."""
    hash(x)
    return type(x), tuple(map(_typed, x)) if isinstance(x, tuple) else x


def defvjp(fun: Any, *vjpmakers: _Maker | None, argnums: Sequence[int] | None = None) -> None:
    """Give the `primitive` ``fun`` for each argument (or those at ``argnums``) a function of ``(result, *args)`` that gives
    ``g -> gradient``; None for a gradient of zero.

    Raises ArgumentError for another function, or if it has a gradient already.
    """
    if not isinstance(fun, primitive):
        raise ArgumentError(f"defvjp: expected a function made by @primitive, got {type(fun).__name__}")
    places = range(len(vjpmakers)) if argnums is None else argnums
    fun.define(dict(zip(places, vjpmakers, strict=True)))


def defjvp(fun: Any, *jvpmakers: Any, argnums: Sequence[int] | None = None) -> None:
    """Nothing, for programs that give both: derivatives in a direction are computed from the gradients of `defvjp`.

    Raises ArgumentError for a function that is no `primitive`.
    """
    if not isinstance(fun, primitive):
        raise ArgumentError(f"defjvp: expected a function made by @primitive, got {type(fun).__name__}")
