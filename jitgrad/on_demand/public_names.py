"""Public names whose modules are imported when they are first used, ``jit`` above all.

Ops, gradients, modules and optimizers come with ``import jitgrad``. The rest is more than half of the code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final, NoReturn

from jitgrad.core.tensor import Tensor
from jitgrad.on_demand.fresh_import import imported
from jitgrad.ops.in_place_forms import in_place
from jitgrad.ops.methods import install

# by name, the modules that they are, or are in
PUBLIC_MODULES: Mapping[str, str] = {
    "distributions": "jitgrad.distributions", "flatten_util": "jitgrad.flatten_util", "func": "jitgrad.func",
    "inspect": "jitgrad.inspect", "lax": "jitgrad.lax", "tree": "jitgrad.tree", "tree_util": "jitgrad.tree_util",
    "scipy": "jitgrad.scipy", "signal": "jitgrad.signal", "special": "jitgrad.scipy.special",
}  # fmt: skip
_FUNCTIONS_OF: Mapping[str, str] = {  # module -> its public functions
    "jitgrad.inspect": "compare",
    "jitgrad.batching": "hessian jacobian vmap",
    "jitgrad.func": "jacfwd jacrev",
    "jitgrad.jit.load_ejected": "load_ejected",
    "jitgrad.runtime.executor.thread_pool": "get_num_threads set_flush_denormal set_num_threads",
    "jitgrad.signal.torch_windows": "bartlett_window blackman_window hamming_window hann_window kaiser_window",
    "jitgrad.nn.functional": "adaptive_avg_pool1d alpha_dropout avg_pool1d bilinear channel_shuffle conv1d conv3d "
    "conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity feature_alpha_dropout hardshrink max_pool1d "
    "max_pool3d pairwise_distance pdist pixel_shuffle pixel_unshuffle rrelu threshold",
    "jitgrad.numpy.torch_calculus": "cumulative_trapezoid gradient",
    "jitgrad.numpy.factors": "lu_unpack ormqr",
    "jitgrad.numpy.torch_linalg": "geqrf lu lu_solve pca_lowrank qr svd svd_lowrank triangular_solve",
    "jitgrad.numpy.torch_histograms": "histc histogram histogramdd",
    "jitgrad.ops.bessel": "i0",
    "jitgrad.ops.gamma": "igamma igammac",
    "jitgrad.scipy.special.factorials": "mvlgamma",
    "jitgrad.ops.torch_copies": "alias_copy as_strided_copy detach_copy diagonal_copy expand_copy narrow_copy permute_copy "
    "select_copy slice_copy split_copy split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy unfold_copy "
    "unsqueeze_copy view_as_complex_copy view_as_real_copy view_copy",
    "jitgrad.ops.torch_creation": "empty_permuted empty_strided frombuffer scalar_tensor",
    "jitgrad.ops.torch_in_place": "abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ "
    "atan_ atanh_ ceil_ celu_ clamp_ clamp_max_ clamp_min_ clip_ cos_ cosh_ deg2rad_ detach_ erf_ erfc_ exp2_ exp_ expm1_ fill_ "
    "fix_ floor_ frac_ gcd_ i0_ index_put_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ "
    "negative_ rad2deg_ reciprocal_ relu_ resize_as_ round_ rsqrt_ selu_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ "
    "trunc_ xlogy_ zero_",
    "jitgrad.ops.torch_queries": "adjoint chain_matmul detach fill get_default_device initial_seed is_conj is_inference "
    "is_neg is_nonzero is_same_size is_signed range resolve_conj resolve_neg seed set_printoptions unsafe_chunk",
    "jitgrad.ops.draws": "poisson",
    "jitgrad.nn.in_place": "alpha_dropout_ dropout_ feature_alpha_dropout_ rrelu_ threshold_",
    "jitgrad.ops.torch_selections": "as_strided_scatter constant_pad_nd index_reduce mode msort nonzero_static renorm "
    "split_with_sizes unsafe_split",
    "jitgrad.signal.spectra": "istft stft",
}
PUBLIC_FUNCTIONS: Mapping[str, str] = {
    name: module for module, names in _FUNCTIONS_OF.items() for name in names.split()
}
# those of them that are methods of Tensor as well, with the tensor as first argument; and of these, those with x.name_()
_METHODS = (
    "as_strided_scatter geqrf histc histogram i0 igamma igammac index_reduce istft mode msort lu lu_solve mvlgamma "
    "narrow_copy nonzero_static ormqr qr renorm split_with_sizes stft svd triangular_solve unsafe_split"
)
_IN_PLACE = "i0 igamma igammac index_reduce mvlgamma renorm"


def attribute_of(namespace: dict[str, Any], missing: Callable[[str], NoReturn]) -> Callable[[str], Any]:
    """The ``__getattr__`` of the package with ``namespace``: imports what is listed above; ``missing(name)`` raises for others.

    A name is found once, and then lies in ``namespace``.
    """

    def __getattr__(name: str) -> Any:
        place = PUBLIC_MODULES.get(name) or PUBLIC_FUNCTIONS.get(name)
        if place is None:
            missing(name)
        module = imported(lambda: import_module(place))
        namespace[name] = found = module if name in PUBLIC_MODULES else getattr(module, name)
        return found

    return __getattr__


@cache
def _function(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(imported(lambda: import_module(PUBLIC_FUNCTIONS[name])), name)
    return function


@cache
def _in_place(name: str) -> Callable[..., Any]:
    return in_place(_function(name))


def _method(name: str, function: Callable[[str], Callable[..., Any]], doc: str) -> Callable[..., Any]:
    """The method that calls what ``function(name)`` imports at the first call."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return function(name)(self, *args, **kwargs)

    method.__doc__ = doc
    return method


install({name: _method(name, _function, f"``jitgrad.{name}`` of this tensor.") for name in _METHODS.split()})
install({f"{name}_": _method(name, _in_place, f"``{name}`` in place.") for name in _IN_PLACE.split()})


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile ``function``: fuse its operations, forward and backward, into kernels.

    The function runs once per signature (shapes, dtypes, static values, grad mode) on tensors without data;
    afterwards its compiled program runs. Guards watch what it read from outside: a change retraces. Each way through
    branches that values of tensors decide has a program of its own.

    Args:
        static_argnames, static_argnums: arguments whose value is part of the program.
        donate: arguments, by name or position, that the caller gives away: results may be written
            over them, which saves memory and time where a step returns new state. After the call
            their tensors hold no data, and using one raises DonatedError. NumPy arrays, and tensors
            whose memory has another owner (a view, an array from ``.numpy()``), are never
            overwritten; a call that runs eagerly, or inside another @jit function, donates nothing.
        fallback: "error" raises if the function cannot be traced; "eager" warns once and runs it.
        check: "first" also runs the first call of each executable eagerly and compares; "always"
            every call; "off" none.
        backend: the target: "cpu" (LLVM), "numba", "python" or "cuda". By default that of the tensors'
            device; for the host, JITGRAD_BACKEND names it.
        background: compile in a thread. The function is traced at the first call, and runs eagerly until
            its program is there; the next call checks it. ``f.compile`` waits for it.
        memory_budget: the most memory of temporaries, in bytes (an int, or "512 MB"), or as a part, 0.0 to 1.0, of
            what the program takes without it. Values are computed again in place of being kept (docs/memory.md).
        passes: which passes run: ``{"fuse": False}`` leaves one out, to see what it does. `f.graph` shows their names.

    Raises:
        ArgumentError: an option names no parameter, or no backend; or gradients flow from the
            result of a function with ``donate`` to its arguments.
        TracedValueError, UnguardableError, MemoryBudgetError: at the first call, naming the line and the remedy.
    """
    return imported(_decorator)(function, **options)


jit.__dict__["Final"] = Final  # torch.jit's name: `scale: torch.jit.Final[float]`


class _OfInspect:
    """A method of compiled functions that `jitgrad.inspect` has, which takes its place when it is imported."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        imported(_inspect)
        return getattr(owner if instance is None else instance, self.name)


def _decorator() -> Callable[..., Any]:
    from jitgrad.jit.decorator import JitFunction
    from jitgrad.jit.decorator import jit as decorate

    for name in ("explain", "compile", "kernels", "graph", "report", "replay"):
        if name not in vars(JitFunction):
            setattr(JitFunction, name, _OfInspect(name))
    return decorate


def _inspect() -> Any:
    import jitgrad.inspect

    return jitgrad.inspect
