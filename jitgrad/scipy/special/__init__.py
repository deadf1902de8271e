"""scipy.special: elementwise functions that fuse into kernels; imports core, ops, numpy, scipy.fallback.

A name is public once it is imported here ``as`` itself.
"""

# ruff: noqa: I001
# fmt: off
from types import ModuleType as _ModuleType
from typing import Any as _Any

from jitgrad.core.errors import shown as _shown
from jitgrad.ops.activations import logsigmoid as _logsigmoid
from jitgrad.ops.bessel import (
    i0 as i0, i0e as i0e, i1 as i1, i1e as i1e, j0 as j0, j1 as j1, k0 as k0, k0e as k0e, k1 as k1, k1e as k1e, y0 as y0,
    y1 as y1,
)
from jitgrad.ops.entropy import exprel as exprel, logit as logit, xlog1py as xlog1py, xlogy as xlogy
from jitgrad.ops.exponential_integral import exp1 as exp1, expi as expi
from jitgrad.ops.gamma import (
    digamma as digamma, gamma as gamma, gammainc as gammainc, gammaincc as gammaincc, gammaln as gammaln,
    polygamma as polygamma, zeta as zeta,
)
from jitgrad.ops.rounding import round as round
from jitgrad.ops.normal_distribution import (
    erfcinv as erfcinv, erfcx as erfcx, erfinv as erfinv, log_ndtr as log_ndtr, ndtr as ndtr, ndtri as ndtri,
)
from jitgrad.ops.special import erf as erf, erfc as erfc
from jitgrad.numpy.elementwise import sinc as sinc
from jitgrad.ops.transcendental import exp2 as exp2, expm1 as expm1, log1p as log1p, sigmoid as _sigmoid
from jitgrad.scipy.fallback import own_of_scipy as _own_of_scipy
from jitgrad.scipy.special.beta import beta as beta, betaln as betaln, comb as comb
from jitgrad.scipy.special.elliptic import (
    ellipe as ellipe, ellipk as ellipk, ellipkm1 as ellipkm1, huber as huber, pseudo_huber as pseudo_huber,
    spherical_bessel_j0 as spherical_bessel_j0,
)
from jitgrad.scipy.special.entropies import entr as entr, kl_div as kl_div, rel_entr as rel_entr
from jitgrad.scipy.special.factorials import (
    factorial as factorial, gammasgn as gammasgn, multigammaln as multigammaln, poch as poch, rgamma as rgamma,
)
from jitgrad.scipy.special.incomplete_beta import betainc as betainc, betaincc as betaincc
from jitgrad.scipy.special.of_scipy import (
    airy as airy, airy_ai as airy_ai, bessel_jn as bessel_jn, dawsn as dawsn, ellipeinc as ellipeinc,
    ellipkinc as ellipkinc, erfi as erfi, expn as expn, fresnel as fresnel, hyp0f1 as hyp0f1, hyp1f1 as hyp1f1,
    hyp2f1 as hyp2f1, iv as iv, ive as ive, jv as jv, kv as kv, kve as kve, modstruve as modstruve, owens_t as owens_t,
    shichi as shichi, sici as sici, spence as spence, spherical_in as spherical_in, spherical_jn as spherical_jn,
    spherical_kn as spherical_kn, spherical_yn as spherical_yn, struve as struve, yv as yv,
)
from jitgrad.scipy.special.orthogonal import (
    chebyshev_polynomial_t as chebyshev_polynomial_t, chebyshev_polynomial_u as chebyshev_polynomial_u,
    chebyshev_polynomial_v as chebyshev_polynomial_v, chebyshev_polynomial_w as chebyshev_polynomial_w,
    eval_chebyt as eval_chebyt, eval_chebyu as eval_chebyu, eval_hermite as eval_hermite,
    eval_hermitenorm as eval_hermitenorm, eval_laguerre as eval_laguerre, eval_legendre as eval_legendre,
    eval_sh_chebyt as eval_sh_chebyt, eval_sh_chebyu as eval_sh_chebyu,
    hermite_polynomial_h as hermite_polynomial_h, hermite_polynomial_he as hermite_polynomial_he,
    laguerre_polynomial_l as laguerre_polynomial_l, legendre_polynomial_p as legendre_polynomial_p,
    shifted_chebyshev_polynomial_t as shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u as shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v as shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w as shifted_chebyshev_polynomial_w,
)
from jitgrad.scipy.special.sums import log_softmax as log_softmax, logsumexp as logsumexp, softmax as softmax

psi = digamma
expit = _sigmoid
log_expit = _logsigmoid
modified_bessel_i0 = i0
modified_bessel_i1 = i1
modified_bessel_k0 = k0
modified_bessel_k1 = k1
scaled_modified_bessel_k0 = k0e
scaled_modified_bessel_k1 = k1e
bessel_j0 = j0
bessel_j1 = j1
bessel_y0 = y0
bessel_y1 = y1
jn = jv
yn = yv
kn = kv

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


def __getattr__(name: str) -> _Any:
    """SciPy's own, if it is installed: functions of arrays, without gradients and outside of @jit."""
    instead = _INSTEAD.get(name)
    found = None if instead else _own_of_scipy("special", name)
    if found is None:
        remedy = f"use {instead}" if instead else "compose it of the functions here"
        raise AttributeError(f"jitgrad.scipy.special has no {_shown(name)}; {remedy}", name=name)
    return found
