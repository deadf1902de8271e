"""Reads that no guard can watch are errors with the line and the remedy, if they ran."""

# ruff: noqa: SIM115, PLC3002  (the lambdas are the functions under test)
from __future__ import annotations

import datetime
import functools
import gc
import os
import random
import secrets
import sys
import threading
import time
import uuid
from datetime import datetime as moment
from time import perf_counter
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import UnguardableError
from tests.guards.observe import observe

counter = 0
stream = iter([1, 2, 3])
generator = (k for k in range(3))


def imports_the_clock(x: Any) -> Any:
    import time as clock

    return x * clock.time()


def imports_one_function(x: Any) -> Any:
    from random import gauss as noise

    return x * noise(0, 1)


READS = {
    "time.time": lambda x: x * time.time(),
    "perf_counter": lambda x: x * perf_counter(),
    "random.random": lambda x: x * random.random(),
    "np.random.rand": lambda x: x * np.random.rand(),
    "np.random.default_rng": lambda x: np.random.default_rng().normal() * x,
    "os.environ": lambda x: os.environ["HOME"],
    "os.environ (get)": lambda x: os.environ.get("HOME"),
    "os.getenv": lambda x: os.getenv("HOME"),
    "datetime.datetime.now": lambda x: datetime.datetime.now(),
    "moment.now": lambda x: moment.now(),
    "input": lambda x: input(),
    "open": lambda x: open("file"),
    "uuid.uuid4": lambda x: uuid.uuid4(),
    "secrets.token_bytes": lambda x: secrets.token_bytes(),
    "threading.get_ident": lambda x: threading.get_ident(),
    "gc.isenabled": lambda x: x * gc.isenabled(),
    "sys.getrefcount": lambda x: x * sys.getrefcount(stream),
    "globals": lambda x: globals()["counter"],
    "eval": lambda x: eval("counter"),
    "stream": lambda x: next(stream),
    "generator": lambda x: [y for y in generator],
    "time.time (imported inside)": imports_the_clock,
    "random.gauss (imported inside)": imports_one_function,
}


@pytest.mark.parametrize("name", READS)
def test_unguardable_read_names_its_line(name):
    function = READS[name]
    with pytest.raises(UnguardableError) as caught:
        observe(function)

    code = function.__code__
    line = code.co_firstlineno + (3 if function.__name__ != "<lambda>" else 0)
    assert str(caught.value).startswith(f"{code.co_filename}:{line}: ")
    assert f"`{name.partition(' ')[0]}`" in str(caught.value)


def test_in_a_called_method_and_in_a_nested_function():
    class Model:
        def noise(self) -> float:
            return random.random()

        def forward(self, x: Any) -> Any:
            return x * self.noise()

    def outer(x):
        return [(lambda y: y * time.time())(z) for z in x]

    with pytest.raises(UnguardableError, match="use jitgrad's random functions"):
        observe(Model().forward)
    with pytest.raises(UnguardableError, match="read the clock outside and pass the result"):
        observe(outer)


def test_a_clock_held_by_an_object_or_a_partial():
    class Model:
        def __init__(self) -> None:
            self.clock = time.perf_counter

    model = Model()
    tick = functools.partial(time.time)
    for function in (lambda: model.clock(), lambda: tick()):
        with pytest.raises(UnguardableError, match="read the clock outside"):
            observe(function)


def test_methods_that_are_not_mentioned_may_do_anything():
    class Model:
        def load(self) -> str:
            return open("weights").read() + str(time.time())

        def __repr__(self) -> str:
            return f"Model at {id(self)}"

        def forward(self, x: Any) -> Any:
            return x

    assert observe(Model().forward).guard().check() is None


def test_printing_and_logging_are_allowed():
    def f(x):
        print("step", x)
        return x

    assert observe(f).guard().check() is None


def test_assignment_to_a_global():
    def f(x):
        global counter
        counter = counter + 1
        return x

    (text,) = observe(f).changes()
    assert text.startswith(f"global `counter` (test_denylist.py:{f.__code__.co_firstlineno + 2}) changed from 0 to 1")


def test_assignment_to_an_outer_variable():
    total = 0

    def f(x):
        nonlocal total
        total += 1
        return x

    environment = observe(f)
    assert "closure cell `total`" in environment.changes()[0]
    environment.restore()
    assert total == 0


def test_assignment_to_a_variable_of_the_traced_function_itself_is_allowed():
    def f(x):
        total = 0

        def add(y):
            nonlocal total
            total += y

        add(x)
        return total

    assert observe(f).guard().check() is None


def test_a_local_of_the_same_name_is_no_clock():
    class Fixed:
        def time(self):
            return 1

        random = time

    def f(time, random):
        return time.time(), random.random()

    assert observe(f, Fixed(), Fixed()).guard().check() is None


@pytest.mark.parametrize(
    "take", [next, list, sum, lambda items: [k for k in items], lambda items: dict(zip("ab", items, strict=False))]
)
def test_iterators_that_are_arguments_are_refused(take):
    """A call would use up what the next one needs, and its trace what the checking run needs."""
    compiled = jg.jit(lambda x, items: (take(items), x * 2)[1], backend="python")
    with pytest.raises(UnguardableError, match=r"argument 1.*take from it outside"):
        compiled(jg.ones(2), iter([1.0, 2.0, 3.0]))


def test_threads_are_refused():
    def f(x):
        thread = threading.Thread(target=lambda: None)
        thread.start()
        thread.join()
        return x

    with pytest.raises(UnguardableError, match="what runs in another thread is not traced"):
        jg.jit(f, backend="python")(jg.ones(2))
