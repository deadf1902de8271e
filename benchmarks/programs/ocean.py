"""Parts of ocean models: the equation of state, turbulent kinetic energy and mixing along isoneutral surfaces.

The coefficients are those of the 48-term expression of sea water's specific volume (IOC, SCOR and IAPSO, 2010: The
international thermodynamic equation of seawater, appendix K), in terms of absolute salinity, conservative temperature
and pressure in dbar.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.programs.program import gradient_of, program, value_of
from benchmarks.workload import Arrays, Sizes

# fmt: off
_NUMERATOR = (
    9.998420897506056e2, 2.839940833161907, -3.147759265588511e-2, 1.181805545074306e-3, -6.698001071123802,
    -2.986498947203215e-2, 2.327859407479162e-4, -3.988822378968490e-2, 5.095422573880500e-4, -1.426984671633621e-5,
    1.645039373682922e-7, -2.233269627352527e-2, -3.436090079851880e-4, 3.726050720345733e-6, -1.806789763745328e-4,
    6.876837219536232e-7, -3.087032500374211e-7, -1.988366587925593e-8, -1.061519070296458e-11, 1.550932729220080e-10,
)
_DENOMINATOR = (
    1.0, 2.775927747785646e-3, -2.349607444135925e-5, 1.119513357486743e-6, 6.743689325042773e-10,
    -7.521448093615448e-3, -2.764306979894411e-5, 1.262937315098546e-7, 9.527875081696435e-10, -1.811147201949891e-11,
    -3.303308871386421e-5, 3.801564588876298e-7, -7.672876869259043e-9, -4.634182341116144e-11, 2.681097235569143e-12,
    5.419326551148740e-6, -2.742185394906099e-5, -3.212746477974189e-7, 3.191413910561627e-9, -1.931012931541776e-12,
    -1.105097577149576e-7, 6.211426728363857e-10, -1.119011592875110e-10, -1.941660213148725e-11,
    -1.864826425365600e-14, 1.119522344879478e-14, -1.200507748551599e-15, 6.057902487546866e-17,
)
# fmt: on
_NODES, _WEIGHTS = (0.5 * x for x in np.polynomial.legendre.leggauss(6))


def _specific_volume(xp: Any, salt: Any, heat: Any, p: Any) -> Any:
    """In m3/kg, of salinity in g/kg, temperature in degrees Celsius and pressure in dbar."""
    n, d, root = _NUMERATOR, _DENOMINATOR, xp.sqrt(salt)
    top = n[0] + heat * (n[1] + heat * (n[2] + n[3] * heat)) + salt * (n[4] + heat * (n[5] + n[6] * heat))
    top = top + salt * root * (n[7] + heat * (n[8] + heat * (n[9] + n[10] * heat)))
    top = top + p * (n[11] + heat * (n[12] + n[13] * heat) + salt * (n[14] + n[15] * heat))
    top = top + p * p * (n[16] + heat * (n[17] + n[18] * heat) + n[19] * salt)
    low = d[0] + heat * (d[1] + heat * (d[2] + heat * (d[3] + d[4] * heat)))
    low = low + salt * (d[5] + heat * (d[6] + heat * (d[7] + heat * (d[8] + d[9] * heat))))
    low = low + salt * root * (d[10] + heat * (d[11] + heat * (d[12] + heat * (d[13] + d[14] * heat))) + d[15] * salt)
    low = low + p * (d[16] + heat * (d[17] + heat * (d[18] + d[19] * heat)) + d[20] * salt)
    low = low + p * p * (d[21] + d[22] * heat * heat + d[23] * salt)
    low = low + p * p * p * (d[24] + d[25] * heat + d[26] * heat * heat + d[27] * salt)
    return low / top


def _enthalpy(xp: Any, salt: Any, heat: Any, p: Any) -> Any:
    """The dynamic enthalpy, an integral over the pressure by six Gauss points, summed over all places."""
    total = 0.0
    for x, weight in zip(_NODES, _WEIGHTS, strict=True):
        total = total + float(weight) * _specific_volume(xp, salt, heat, float(x + 0.5) * p)
    return xp.sum(total * p * 1e4)


def _water(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    n = sizes["n"]
    return rng.uniform(1, 40, n), rng.uniform(-2, 30, n), rng.uniform(0, 1000, n)


def _turbulent_energy(xp: Any, energy: Any, u: Any, v: Any, rho: Any) -> Any:
    """Steps of the turbulent kinetic energy of columns of water: shear, buoyancy, dissipation, vertical diffusion."""
    dz, dt = 10.0, 60.0
    du, dv, drho = u[:, 1:] - u[:, :-1], v[:, 1:] - v[:, :-1], rho[:, 1:] - rho[:, :-1]
    shear = (du * du + dv * dv) / dz**2
    stability = -9.81 / 1024.0 * drho / dz
    for _ in range(5):
        root = xp.sqrt(xp.where(energy > 1e-8, energy, 1e-8))
        length = xp.where(stability > 1e-8, root * xp.sqrt(2.0 / xp.where(stability > 1e-8, stability, 1.0)), 50.0)
        length = xp.where(length < 50.0, length, 50.0)
        viscosity = 0.1 * length * root
        prandtl = xp.where(stability > 0.0, 1.0 + 5.0 * stability / (shear + 1e-6), 1.0)
        prandtl = xp.where(prandtl < 10.0, prandtl, 10.0)
        source = viscosity * (shear - stability / prandtl) - 0.7 * root * energy / length
        between = 0.5 * (viscosity[:, 1:] + viscosity[:, :-1]) * (energy[:, 1:] - energy[:, :-1]) / dz**2
        inner = energy[:, 1:-1] + dt * (between[:, 1:] - between[:, :-1]) + dt * source[:, 1:-1]
        energy = xp.concat([energy[:, :1], inner, energy[:, -1:]], 1)
        energy = xp.where(energy > 1e-6, energy, 1e-6)
    return xp.sum(energy)


def _columns(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    n, k = sizes["columns"], sizes["levels"]
    rho = 1020 + np.sort(rng.uniform(0, 5, (n, k)), axis=1)[:, ::-1]
    return rng.uniform(1e-5, 1e-3, (n, k - 1)), rng.normal(0, 0.3, (n, k)), rng.normal(0, 0.3, (n, k)), rho.copy()


def _isoneutral(xp: Any, tracer: Any, rho: Any) -> Any:
    """The tendency of a tracer that mixes along surfaces of equal density, with slopes tapered where they are steep."""

    def inside(x: Any, i: int, j: int, k: int) -> Any:
        nx, ny, nz = x.shape
        return x[1 + i : nx - 1 + i, 1 + j : ny - 1 + j, 1 + k : nz - 1 + k]

    dz = inside(rho, 0, 0, 1) - inside(rho, 0, 0, -1)
    dz = xp.where(dz < -1e-4, dz, -1e-4)
    sx = -(inside(rho, 1, 0, 0) - inside(rho, -1, 0, 0)) / dz
    sy = -(inside(rho, 0, 1, 0) - inside(rho, 0, -1, 0)) / dz
    taper = 0.5 * (1.0 + xp.tanh((0.5 - xp.sqrt(sx * sx + sy * sy + 1e-12)) / 0.1))
    tx = 0.5 * (inside(tracer, 1, 0, 0) - inside(tracer, -1, 0, 0))
    ty = 0.5 * (inside(tracer, 0, 1, 0) - inside(tracer, 0, -1, 0))
    tz = 0.5 * (inside(tracer, 0, 0, 1) - inside(tracer, 0, 0, -1))
    fx, fy = taper * (tx + sx * tz), taper * (ty + sy * tz)
    fz = taper * (sx * tx + sy * ty + (sx * sx + sy * sy) * tz)
    across = inside(fx, 1, 0, 0) - inside(fx, -1, 0, 0) + inside(fy, 0, 1, 0) - inside(fy, 0, -1, 0)
    return across + inside(fz, 0, 0, 1) - inside(fz, 0, 0, -1)


def _fields(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    n = sizes["n"]
    return rng.normal(size=(n, n, n)), 1020 - np.linspace(0, 5, n) + 0.01 * rng.normal(size=(n, n, n))


PROGRAMS = (
    program(
        "enthalpy", "sea water's dynamic enthalpy: value, d/dsalinity, d/dtemperature", _water, gradient_of(_enthalpy, (0, 1)),
        {"n": 1_000_000}, {"n": 100}, "arithmetic: 900 operations an element", tolerance=1e-9,
    ),
    program(
        "turbulence", "turbulent kinetic energy of 20,000 columns, 5 steps: value and gradient", _columns,
        gradient_of(_turbulent_energy), {"columns": 20_000, "levels": 50}, {"columns": 6, "levels": 7},
        "memory: each step reads and writes its columns", tolerance=1e-8,
    ),
    program(
        "isoneutral", "mixing along isoneutral surfaces, 100 x 100 x 100", _fields, value_of(_isoneutral),
        {"n": 100}, {"n": 8}, "memory: two fields read, three fluxes between", gradients=False, tolerance=1e-8,
    ),
)  # fmt: skip
