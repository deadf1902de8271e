"""Errors for names that do not exist: what was meant, or what to use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import NoReturn

_DIFFERENTIATE = "jitgrad itself has grad, value_and_grad, vjp, jvp, hvp, jacobian and hessian"
_NO_WAIT = "results on the host are complete; on a GPU use jitgrad.cuda.synchronize()"
INSTEAD: Mapping[str, str] = {  # what users of torch and JAX type
    "compile": "decorate the function with jitgrad.jit",
    "script": "decorate the function with jitgrad.jit",
    "pmap": "there is one process and one device; jitgrad.vmap is for examples, and kernels use all cores",
    "distributed": "there is one process and one device",
    "DistributedDataParallel": "there is one process and one device; nn.DataParallel(module) runs the module there",
    "autograd": _DIFFERENTIATE,
    "GradScaler": "it is jitgrad.amp.GradScaler", "bfloat16": "NumPy has no bfloat16; the floats are 16, 32 and 64 bits",
    "complex32": "use complex64",
    "sparse": "there are no sparse tensors; use index_add and take", "sparse_coo_tensor": "use index_add and take",
    "set_default_device": 'pass device="cuda", or move tensors and modules with .to("cuda")',
    "set_default_tensor_type": "use jitgrad.set_default_dtype",
    "DataLoader": "it is jitgrad.utils.data.DataLoader",
    "Function": "it is jitgrad.autograd.Function", "custom_gradient": "use jitgrad.custom_vjp",
    "random": "import jitgrad.jax.random for numbers from keys; jitgrad's own come from generators: "
    "jitgrad.manual_seed(seed) and jitgrad.normal(..., generator=jitgrad.Generator(seed))",
    "PRNGKey": "it is jitgrad.jax.random.PRNGKey; generators are jitgrad.Generator(seed)",
    "tree_map": "it is jitgrad.tree_util.tree_map",
    "remat": "it is jitgrad.checkpoint", "stop_gradient": "use x.detach()", "linearize": "use jitgrad.jvp or jitgrad.vjp",
    "device_put": "use x.to(device)", "devices": "use jitgrad.cuda.device_count()", "block_until_ready": _NO_WAIT,
    "make_jaxpr": "print jitgrad.jit(f).graph(*args)", "eval_shape": "jitgrad.jit(f).graph(*args) has the shapes of the results",
    "Array": "it is jitgrad.Tensor",
    "ShapeDtypeStruct": "it is jitgrad.ShapeDtypeStruct",
}  # fmt: skip

Lookup = Callable[[str], NoReturn]  # the ``__getattr__`` of a module


def meant(name: str, known: Iterable[str]) -> str:
    """ " (did you mean 'x'?)", or nothing."""
    close = get_close_matches(name, [k for k in known if not k.startswith("_")], 1, 0.65)
    return f" (did you mean {close[0]!r}?)" if close else ""


def raising(module: str, names: Mapping[str, object], instead: Mapping[str, str] = INSTEAD) -> Lookup:
    """A ``__getattr__`` for ``module``, whose namespace is ``names``; ``instead``: what to use for names that others have."""

    def __getattr__(name: str) -> NoReturn:
        advice = ""
        if not name.startswith("_"):
            advice = f": {instead[name]}" if name in instead else meant(name, names)
        raise AttributeError(f"{module} has no {name!r}{advice}", name=name)

    return __getattr__
