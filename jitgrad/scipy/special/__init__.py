"""scipy.special: elementwise functions that fuse into kernels; imports core, ops.

A name is public once it is imported here ``as`` itself.
"""

# ruff: noqa: I001
# fmt: off
from types import ModuleType as _ModuleType
from typing import NoReturn as _NoReturn

from jitgrad.core.errors import shown as _shown
from jitgrad.ops.activations import logsigmoid as _logsigmoid
from jitgrad.ops.bessel import i0 as i0, i0e as i0e, i1 as i1, i1e as i1e
from jitgrad.ops.entropy import exprel as exprel, logit as logit, xlog1py as xlog1py, xlogy as xlogy
from jitgrad.ops.gamma import (
    digamma as digamma, gamma as gamma, gammainc as gammainc, gammaincc as gammaincc, gammaln as gammaln,
    polygamma as polygamma, zeta as zeta,
)
from jitgrad.ops.normal_distribution import (
    erfcinv as erfcinv, erfcx as erfcx, erfinv as erfinv, log_ndtr as log_ndtr, ndtr as ndtr, ndtri as ndtri,
)
from jitgrad.ops.special import erf as erf, erfc as erfc
from jitgrad.ops.transcendental import exp2 as exp2, expm1 as expm1, log1p as log1p, sigmoid as _sigmoid
from jitgrad.scipy.special.beta import beta as beta, betaln as betaln, comb as comb
from jitgrad.scipy.special.entropies import entr as entr, kl_div as kl_div, rel_entr as rel_entr
from jitgrad.scipy.special.factorials import (
    factorial as factorial, gammasgn as gammasgn, multigammaln as multigammaln, poch as poch, rgamma as rgamma,
)
from jitgrad.scipy.special.incomplete_beta import betainc as betainc, betaincc as betaincc
from jitgrad.scipy.special.sums import log_softmax as log_softmax, logsumexp as logsumexp, softmax as softmax

psi = digamma
expit = _sigmoid
log_expit = _logsigmoid

# Assigned this way because type checkers would take an ``__all__`` that they cannot compute for an empty one.
globals()["__all__"] = sorted(
    name for name, value in globals().items() if name[0] != "_" and not isinstance(value, _ModuleType)
)

_INSTEAD = {
    "loggamma": "gammaln(x), which is equal for x > 0",
    "binom": "comb(n, k)",
    "cbrt": "jg.pow(x, 1 / 3) for x >= 0",
    "exp10": "jg.pow(10.0, x)",
}


def __getattr__(name: str) -> _NoReturn:
    instead = _INSTEAD.get(name)
    remedy = f"use {instead}" if instead else (
        f"compose it of the functions here, or, if SciPy has it, make it an op: "
        f"jg.custom_op(forward=scipy.special.{name}, vjp=...)"
    )
    raise AttributeError(f"jitgrad.scipy.special has no {_shown(name)}; {remedy}", name=name)
