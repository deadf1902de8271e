"""Garbage collection and traces: callbacks of the collector are not part of the traced function."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import jitgrad as jg
from jitgrad import jit
from jitgrad.core.gc_paused import gc_paused

collections = 0


def count_collections(phase: str, info: dict[str, int]) -> None:
    """Changes global state, as callbacks do that measure the time of collections."""
    global collections
    collections += 1


@pytest.fixture
def counted() -> Iterator[None]:
    gc.callbacks.append(count_collections)
    yield
    gc.callbacks.remove(count_collections)


def test_collections_stay_paused_until_the_last_thread_is_done() -> None:
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with gc_paused():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with gc_paused():
        thread.start()
        inside.wait(10)
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_a_user_who_switched_collections_off_finds_them_off() -> None:
    gc.disable()
    try:
        with gc_paused(), gc_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.usefixtures("counted")
def test_a_callback_of_a_collection_in_the_function_is_not_its_own() -> None:
    @jit
    def f(x: Any) -> Any:
        gc.collect()
        return x * 2

    assert f(jg.ones((2,))).tolist() == [2, 2]
    before = collections
    assert before > 0
    assert f(jg.ones((2,))).tolist() == [2, 2]
    assert f.cache_info().traces == 1
