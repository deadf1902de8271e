"""NumPy's bundled BLAS by address."""

import numpy as np
import pytest

from jitgrad.eager import blas


@pytest.fixture
def bundled():
    found = blas.find_blas()
    if found is None:
        pytest.skip("this NumPy brings no OpenBLAS")
    return found


def test_addresses(bundled):
    assert bundled.sgemm and bundled.dgemm and bundled.sgemm != bundled.dgemm
    assert "openblas" in bundled.library


def test_thread_count_is_the_librarys(bundled):
    before = blas.get_blas_threads()
    blas.set_blas_threads(1)
    try:
        assert blas.get_blas_threads() == 1
    finally:
        blas.set_blas_threads(before)
    assert blas.get_blas_threads() == before


def test_limit_only_lowers(bundled):
    before = blas.get_blas_threads()
    try:
        blas.set_blas_threads(1)
        blas.limit_blas_threads(2)
        assert blas.get_blas_threads() == 1
        blas.set_blas_threads(2)
        blas.limit_blas_threads(1)
        assert blas.get_blas_threads() == 1
    finally:
        blas.set_blas_threads(before)


def test_absent_library_is_none(monkeypatch, tmp_path):
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy.libs").mkdir()
    (tmp_path / "numpy.libs" / "libopenblas.so").write_text("not a library")
    monkeypatch.setattr(np, "__file__", str(tmp_path / "numpy" / "__init__.py"))
    blas._library.cache_clear()
    blas.find_blas.cache_clear()
    try:
        assert blas.find_blas() is None
        assert blas.get_blas_threads() is None
        blas.set_blas_threads(1)
    finally:
        monkeypatch.undo()
        blas._library.cache_clear()
        blas.find_blas.cache_clear()
