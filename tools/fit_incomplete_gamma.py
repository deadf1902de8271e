"""Computes the coefficients of Temme's expansion and prints ``temme_coefficients.py``.

Run ``python -m tools.fit_incomplete_gamma > jitgrad/vecmath/temme_coefficients.py`` (needs mpmath).
N. M. Temme, "The asymptotic expansion of the incomplete gamma functions", SIAM Journal on Mathematical
Analysis 10 (1979); DLMF 8.12. With ``eta**2 / 2 = mu - log(1 + mu)``, ``mu = x / a - 1``, all functions are
power series in ``eta``; each row is cut where its terms are below 2**-60 for ``a >= 20`` and ``|eta| <= 1``.
"""

from __future__ import annotations

from typing import Any

import mpmath as mp

TERMS, ROWS, SMALLEST_A = 60, 11, 20


def _mu() -> list[Any]:
    """The series of ``mu``, from ``mu mu' = eta (1 + mu)``."""
    a = [mp.mpf(0), mp.mpf(1)]
    for n in range(2, TERMS + 1):
        known = mp.fsum(a[i] * (n + 1 - i) * a[n + 1 - i] for i in range(2, n))
        a.append((a[n - 1] - known) / (n + 1))
    return a


def _quotient(a: list[Any]) -> list[Any]:
    """The series of ``eta / mu``."""
    b = [mp.mpf(1)]
    for n in range(1, TERMS):
        b.append(-mp.fsum(a[k + 1] * b[n - k] for k in range(1, n + 1)))
    return b


def rows() -> list[list[Any]]:
    """``C_k(eta)``: ``C_0 = 1 / mu - 1 / eta`` and ``C_k = C_(k-1)' / eta + g_k / mu``, which has no pole."""
    b = _quotient(_mu())
    found = [b[1:]]
    while len(found) < ROWS:
        slope = [(i + 1) * c for i, c in enumerate(found[-1][1:])]
        count = min(len(slope), len(b)) - 1
        found.append([slope[i + 1] - slope[0] * b[i + 1] for i in range(count)])
    return found


def main() -> None:
    """Print the module."""
    mp.mp.prec = 500
    print('"""Power series of Temme\'s expansion of the incomplete gamma functions, one row per power of 1 / a.\n')
    print("``tools/fit_incomplete_gamma.py`` made them.\n\"\"\"\n\nTEMME_TERMS: tuple[tuple[float, ...], ...] = (")
    for k, row in enumerate(rows()):
        while abs(row[-1]) < mp.mpf(2) ** -60 * SMALLEST_A**k:
            row.pop()
        values = [repr(float(c)) for c in row]
        print("    (")
        for i in range(0, len(values), 4):
            print(f"        {', '.join(values[i : i + 4])},")
        print("    ),")
    print(")")


if __name__ == "__main__":
    main()
