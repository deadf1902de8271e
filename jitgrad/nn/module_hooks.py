"""The call of a module, with the hooks that were registered on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitgrad.core.tensor import HookHandle
from jitgrad.nn.backward_hooks import BackwardHooks


class Hooked:
    """What calls ``forward``, and functions before and after it and with its gradients."""

    forward: Callable[..., Any]

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        attributes = self.__dict__
        for before in (*attributes.get("_forward_pre_hooks", ()),):
            if (new := before(self, args)) is not None:
                args = new if isinstance(new, tuple) else (new,)
        hooks = None
        if attributes.get("_backward_hooks") or attributes.get("_backward_pre_hooks"):
            hooks = BackwardHooks(self, attributes.get("_backward_pre_hooks", ()), attributes.get("_backward_hooks", ()))
            args = hooks.arguments(args)
        result = self.forward(*args, **keywords)
        for after in (*attributes.get("_forward_hooks", ()),):
            if (new := after(self, args, result)) is not None:
                result = new
        return result if hooks is None else hooks.results(result)

    def register_forward_pre_hook(self, hook: Callable[[Any, tuple[Any, ...]], Any]) -> HookHandle:
        """Call ``hook(module, args)`` before each forward; what it returns, if not None, replaces the arguments.

        The handle's ``remove()`` takes the hook away.
        """
        return self._registered("_forward_pre_hooks", hook)

    def register_forward_hook(self, hook: Callable[[Any, tuple[Any, ...], Any], Any]) -> HookHandle:
        """Call ``hook(module, args, result)`` after each forward; what it returns, if not None, replaces the result.

        The handle's ``remove()`` takes the hook away.
        """
        return self._registered("_forward_hooks", hook)

    def register_full_backward_hook(self, hook: Callable[[Any, Any, Any], Any]) -> HookHandle:
        """Call ``hook(module, grad_input, grad_output)`` in each backward pass, once the gradients of the positional
        arguments are known; what it returns, if not None, replaces ``grad_input``.

        Both are tuples, with None for what has no gradient. ``forward`` must return a tensor or a tuple. In @jit,
        forward and ``backward`` must be in one function. The handle's ``remove()`` takes the hook away.

        Raises (in forward and backward):
            ArgumentError: ``forward`` returned something else.
            AutogradError: the hook returned a wrong number of gradients.
            ShapeError: it returned one of another shape.
        """
        return self._registered("_backward_hooks", hook)

    def register_full_backward_pre_hook(self, hook: Callable[[Any, Any], Any]) -> HookHandle:
        """Call ``hook(module, grad_output)`` in each backward pass before that of the module; what it returns, if not
        None, replaces ``grad_output``. The rest is as in `register_full_backward_hook`."""
        return self._registered("_backward_pre_hooks", hook)

    def _registered(self, kind: str, hook: Callable[..., Any]) -> HookHandle:
        hooks = self.__dict__.setdefault(kind, [])
        hooks.append(hook)
        return HookHandle(hooks, hook)
