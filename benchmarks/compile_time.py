"""Compile time by number of operations, in fresh processes with an empty and a filled disk cache.

Run as ``python -m benchmarks.compile_time PEER OPERATIONS THREADS`` it compiles one chain and prints the seconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks import peers as libraries
from benchmarks.peers import Peer
from benchmarks.record import Compiling
from jitgrad.inspect.recording import environment_set

COUNTS = (10, 100, 1000)
TIMEOUT = 300
CACHES = ("JITGRAD_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR")


@contextmanager
def empty_caches() -> Iterator[None]:
    """Gives every library an empty disk cache."""
    with tempfile.TemporaryDirectory() as folder, environment_set(_caches_in(folder)):
        yield


def _caches_in(folder: str) -> dict[str, str]:
    return {name: os.path.join(folder, name) for name in CACHES}


def chain(peer: Peer, operations: int) -> Callable[..., Any]:
    """Value and gradient of ``operations`` elementwise operations, all with different constants."""
    xp = peer.xp

    def loss(x: Any) -> Any:
        for k in range(operations // 2):
            x = xp.tanh(x) if k % 5 == 4 else x * (1 + k / operations)
            x = x + k / operations
        return xp.sum(x)

    assert peer.value_and_grad
    return peer.value_and_grad(loss)


def _environment(folder: str) -> dict[str, str]:
    more = _caches_in(folder)
    more["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    more["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
    return {**os.environ, **more}


def _process(peer: str, operations: int, threads: int, folder: str) -> float:
    command = [sys.executable, "-m", "benchmarks.compile_time", peer, str(operations), str(threads)]
    done = subprocess.run(
        command, env=_environment(folder), capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1][:200])
    return float(done.stdout.split()[-1])


def measure(names: Sequence[str], threads: int, *, quick: bool, slow: bool) -> list[Compiling]:
    """Measure all libraries that compile; torch.compile takes a thousand operations only with ``slow``."""
    rows = []
    for operations in COUNTS[:1] if quick else COUNTS:
        for name in names:
            if name not in ("jitgrad", "torch.compile", "jax"):
                continue
            if operations > 100 and name == "torch.compile" and not slow:
                continue
            row = Compiling(name, operations)
            with tempfile.TemporaryDirectory() as folder:
                try:
                    row.cold = _process(name, operations, threads, folder)
                    row.cached = _process(name, operations, threads, folder)
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    row.failure = str(error)
            rows.append(row)
    return rows


def _main(name: str, operations: int, threads: int) -> None:
    libraries.prepare_threads(threads)
    peer = libraries.load(name, threads)
    x = peer.array(np.linspace(-1, 1, 1000, dtype=np.float32))
    function = peer.compile(chain(peer, operations))
    start = time.perf_counter()
    peer.wait(function(x))
    print(time.perf_counter() - start)


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
