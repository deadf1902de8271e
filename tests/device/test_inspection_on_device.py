"""What explanations, kernels and the doctor say of a CUDA device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from benchmarks import peers as libraries
from benchmarks.workloads import ALL
from jitgrad.backends.cuda.capability import Capability
from jitgrad.backends.cuda.ptxas import find_ptxas
from jitgrad.backends.cuda_target.device_code import DeviceCode
from jitgrad.backends.cuda_target.emulated_device import emulate, emulated_device
from jitgrad.backends.llvm import code_object
from jitgrad.core.errors import CacheWarning, DeviceError
from jitgrad.device.driver import LoadableCode
from jitgrad.inspect.doctor import examine
from jitgrad.testing.fake_driver import FakeDriver

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


def test_ptx_is_kept_on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JITGRAD_CACHE_DIR", str(tmp_path))

    with emulated_device():
        f = jg.jit(lambda x: jg.tanh(x) * 1.75)
        (step,) = f.lookup(jg.tensor(X, device="cuda")).program.steps

    def code(capability: tuple[int, int]) -> DeviceCode:
        """As in a process of its own."""
        return DeviceCode(step.kernel.main_code.source, "kernel", Capability(*capability), {})

    counters, before = code_object.COUNTERS, replace(code_object.COUNTERS)
    first, again, newer = code((8, 0)), code((8, 6)), code((9, 0))
    assert "sm_80" in first.ptx
    assert again.ptx == first.ptx  # PTX for 8.0 serves until 9.0
    assert (counters.compiled, counters.from_disk) == (before.compiled + 1, before.from_disk + 1)
    assert newer.ptx != first.ptx
    assert "sm_90" in newer.ptx
    assert counters.compiled == before.compiled + 2
    assert again.llvm == first.llvm
    assert again.resources.threads == first.resources.threads

    (damaged,) = [path for path in (tmp_path / "kernels").iterdir() if b"sm_90" in path.read_bytes()]
    damaged.write_bytes(damaged.read_bytes()[:-1])
    with pytest.warns(CacheWarning, match="compiled again"):
        assert code((9, 0)).ptx == newer.ptx


def test_kernels_with_functions_of_users_are_not_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JITGRAD_CACHE_DIR", str(tmp_path))

    @jg.elementwise
    def bent(x: Any) -> Any:
        while x > 1.0:
            x = x * 0.5
        return x

    with emulated_device():
        (kernel,) = jg.jit(lambda x: bent(x) * 1.75).kernels(jg.tensor(X, device="cuda"))
        assert ".entry" in kernel.ptx
    assert not any(b".entry" in path.read_bytes() for path in tmp_path.rglob("*.kernel"))


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


@pytest.mark.usefixtures("cuda")
def test_compare_times_the_device() -> None:
    x = jg.tensor(X, device="cuda", requires_grad=True)

    found = jg.compare(lambda x: jg.tanh(x @ x).sum(), x, seconds=0.05)

    assert found.agrees, found
    assert found.backward
    assert found.explanation.device == "cuda"
    with pytest.raises(DeviceError, match=r"explain\(measure=True\) of @jit function .* runs on cuda"):
        jg.jit(lambda x: x + 1.0).explain(x, measure=True)


@pytest.mark.usefixtures("cuda")
def test_benchmarks_run_on_the_device() -> None:
    peer = libraries.load("jitgrad", 1, "cuda")
    workload = ALL["rms_norm"]
    inputs = workload.inputs(np.random.default_rng(0), workload.quick)

    found = peer.arrays(peer.wait(peer.compile(workload.function(peer))(*libraries.tree_map(peer.array, inputs))))
    reference = libraries.load("jitgrad.eager", 1)
    expected = reference.arrays(workload.function(reference)(*libraries.tree_map(reference.array, inputs)))

    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


def findings() -> dict[str, Any]:
    return {finding.what: finding for finding in examine()}


@pytest.mark.usefixtures("cuda")
def test_the_doctor_names_the_gpu() -> None:
    found = findings()

    assert found["GPU"].ok
    assert "compute capability" in found["GPU"].found
    assert "the newest that the driver supports" in found["CUDA"].found


def test_the_doctor_says_what_is_missing(no_driver: None) -> None:
    found = findings()

    assert found["GPU"].ok is None
    assert "no CUDA driver was found" in found["GPU"].found
    assert "ptxas" in found


def test_a_kernel_that_spills_on_a_device_is_loaded_with_more_registers() -> None:
    class Spilling(FakeDriver):
        """Its assembler spills what has the registers of two blocks."""

        def __init__(self) -> None:
            super().__init__(emulate, 1 << 20)
            self.texts: list[str] = []

        def load(self, code: LoadableCode) -> int:
            self.texts.append(code.ptx)
            return super().load(code)

        def local_bytes(self, function: int) -> int:
            return 8 * self.texts[function - 1].count(".minnctapersm 2")

    with emulated_device():
        (step,) = jg.jit(jg.tanh).lookup(jg.tensor(X, device="cuda")).program.steps
    driver = Spilling()

    handle = step.kernel.main_code.function(driver)

    assert handle == 2
    assert ".minnctapersm 2" in driver.texts[0]
    assert driver.texts[1] == driver.texts[0].replace(".minnctapersm 2", ".minnctapersm 1")
    assert step.kernel.main_code.function(driver) == handle
    assert len(driver.texts) == 2
