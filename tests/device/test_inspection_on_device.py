"""What explanations, kernels and the doctor say of a CUDA device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.cuda.ptxas import find_ptxas
from jitgrad.device import cuda as device_module
from jitgrad.device.cuda_driver import CudaDriver, load_library
from jitgrad.inspect.doctor import examine

X = np.ones((16, 16), np.float32)


@pytest.mark.usefixtures("cuda")
def test_kernels_show_their_ptx_and_what_they_need() -> None:
    kernel = jg.jit(lambda x: (jg.tanh(x) * 2.0).sum()).kernels(jg.tensor(X, device="cuda"))[0]

    assert kernel.ptx is not None
    assert kernel.ptx.count(".entry") == 2  # the loop, and the sum of the blocks' sums
    assert kernel.asm == kernel.ptx
    assert "nvptx64" in kernel.llvm
    main, epilogue = kernel.resources
    assert (main.entry, epilogue.entry) == ("kernel", "epilogue")
    assert main.threads % 32 == 0
    assert main.shared_bytes > 0
    assert str(main).startswith(f"kernel: {main.threads} threads a block, {main.shared_bytes} bytes shared")
    if find_ptxas() is not None:
        assert 8 <= main.registers <= 255
        assert main.local_bytes == 0


@pytest.mark.usefixtures("cuda")
def test_resources_without_an_assembler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jitgrad.backends.cuda.ptxas.find_ptxas", lambda: None)
    (kernel,) = jg.jit(lambda x: jg.cos(x) * 3.25).kernels(jg.tensor(X, device="cuda"))

    (needed,) = kernel.resources
    assert (needed.registers, needed.local_bytes) == (None, None)
    assert str(needed) == f"kernel: {needed.threads} threads a block, 0 bytes shared"


def test_kernels_of_the_host_have_no_ptx() -> None:
    (kernel,) = jg.jit(lambda x: jg.tanh(x) * 2.0).kernels(jg.tensor(X))

    assert (kernel.ptx, kernel.resources) == (None, ())


@pytest.mark.usefixtures("cuda")
def test_an_explanation_names_the_device(tmp_path: Path) -> None:
    f = jg.jit(lambda x: jg.tanh(x @ x).sum())
    x = jg.tensor(X, device="cuda", requires_grad=True)

    report = f.explain(x)
    assert report.device == report.backward.device == "cuda"
    assert str(report).splitlines()[0].endswith("unfused, on cuda")
    assert "matmul by cuBLAS" in str(report)
    assert f.explain(jg.tensor(X)).device == "cpu"
    assert jg.jit(f.eager, backend="cuda").explain(jg.tensor(X)).device == "cuda"
    f.report(tmp_path / "report.html", x)
    assert "matmul" in (tmp_path / "report.html").read_text(encoding="utf-8")


def findings() -> dict[str, Any]:
    return {finding.what: finding for finding in examine()}


@pytest.mark.usefixtures("cuda")
def test_the_doctor_names_the_gpu() -> None:
    found = findings()

    assert found["GPU"].ok
    assert "compute capability" in found["GPU"].found
    assert "the newest that the driver supports" in found["CUDA"].found


def test_the_doctor_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_module._Current, "device", None)
    monkeypatch.setattr(device_module._Current, "make_driver", lambda: CudaDriver(load_library("libno_such_driver.so.1")))
    found = findings()

    assert found["GPU"].ok is None
    assert "no CUDA driver was found" in found["GPU"].found
    assert "ptxas" in found
