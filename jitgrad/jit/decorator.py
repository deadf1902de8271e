"""@jit: trace a function once per signature, compile it, and then run the compiled program."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Collection, Sequence
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from jitgrad.compiler.pipeline import dump_to, ignore
from jitgrad.core import config
from jitgrad.core.context import anomaly_detection, current_interpreter
from jitgrad.core.errors import ArgumentError, FallbackWarning, TraceError
from jitgrad.core.fork import fork_safe_lock
from jitgrad.core.origin import Origin, users_frame
from jitgrad.jit.anomaly_check import check_call
from jitgrad.jit.background import Pending
from jitgrad.jit.bound_methods import bound_method, pickled_as
from jitgrad.jit.decided import DecidedOtherwise, Outcomes, tell_more
from jitgrad.jit.devices import device_of_arguments
from jitgrad.jit.executable import Executable
from jitgrad.jit.fast_call import MISS
from jitgrad.jit.fast_calls import FastCalls
from jitgrad.jit.first_call_check import check_first_call
from jitgrad.jit.interrupted_calls import finish
from jitgrad.jit.number_arguments import NumberArguments
from jitgrad.jit.options import JitOptions, instead
from jitgrad.jit.program_cache import CacheInfo, ProgramCache
from jitgrad.jit.signature import Call, Signature, key_difference
from jitgrad.jit.snapshot import Snapshot
from jitgrad.jit.switch import disable_jit, disabled
from jitgrad.jit.trace_call import trace_call
from jitgrad.jit.trace_result import TraceResult
from jitgrad.jit.trace_warnings import MANY_TRACES, warn_of_counters, warn_of_effects, warn_of_retraces, write_log
from jitgrad.runtime.program import Program

if TYPE_CHECKING:
    from jitgrad.jit.ejection import Ejected

_T = TypeVar("_T")
# Called with every new executable, so that tools can follow what a whole script compiles.
on_compile: ContextVar[Callable[[JitFunction, Executable], None] | None] = ContextVar("on_compile", default=None)


class JitFunction:
    """A function decorated with ``jit``, with its executables and the reasons for its traces."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        static_argnums: Sequence[int] = (),
        static_argnames: Sequence[str] = (),
        donate: Sequence[int | str] = (),
        **options: Any,
    ) -> None:
        if not callable(function):
            raise ArgumentError(f"@jit takes a function, got {type(function).__name__}: {function!r}")
        self.options: JitOptions = JitOptions(**options)
        functools.update_wrapper(self, function)
        self.eager = function
        self.name: str = getattr(function, "__name__", type(function).__name__)
        self._signature = Signature(function, static_argnums, static_argnames)
        self.donate: frozenset[str] = self._signature.names_of(donate, "donate")
        if both := self.donate & self._signature.static_names:
            raise ArgumentError(f"@jit: static arguments cannot be donated: {', '.join(sorted(both))}")
        self._programs = ProgramCache()
        self._switched_off = config.read("JITGRAD_DISABLE")
        self._numbers = NumberArguments()
        self._traced: dict[Any, TraceResult] = {}  # not compiled yet
        self._pending = Pending()
        self._eager_keys: set[Any] = set()
        self._warned: set[Any] = set()  # signatures with a RetraceWarning
        self._reasons: list[str] = []
        self._info = CacheInfo()
        self._lock = fork_safe_lock()
        self._fast_calls = FastCalls(self._programs, self._lock)  # none while switched off

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        anomaly = anomaly_detection.get()
        decided: Outcomes | None = ()
        if not (disabled.get() or anomaly):
            for fast_call in self._fast_calls.in_order:
                try:
                    result = fast_call(args, kwargs)
                except DecidedOtherwise as other:
                    result, decided = self._fast_calls.other(fast_call, other.outcomes, args, kwargs)
                except KeyboardInterrupt as interrupt:
                    finish(interrupt)
                    raise
                if result is not MISS:
                    self._info.calls += 1
                    return result
        if disabled.get() or current_interpreter.get().tracing or self._switched_off:
            return self.eager(*args, **kwargs)
        call = self._take(args, kwargs)
        self._info.calls += 1
        executable = self._valid_executable(call)
        if executable is None and self._signature.held.add_replaced(e.traced.guard for e in self._programs.of(call.key)):
            call = self._take(args, kwargs)
            executable = self._valid_executable(call)
        if decided:
            return self._decided_otherwise(decided, call, args, kwargs)
        return self._run(executable, call, args, kwargs)

    def _run(self, executable: Executable | None, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of ``call``, for which ``executable`` is valid, or none is."""
        if executable is None or not executable.first_call_done:
            if call.key in self._eager_keys or self._numbers.too_many_values(call):
                return self.eager(*args, **kwargs)
            return self._first_call(call, args, kwargs)
        try:
            if self.options.check_mode == "always":
                executable.check_decided(call.leaves)
                return self._checked(executable, call, args, kwargs)[0]
            if anomaly_detection.get():
                check_call(executable, call.leaves)
            result = executable.run(call.leaves)
        except DecidedOtherwise as other:
            return self._decided_otherwise(other.outcomes, call, args, kwargs)
        with self._lock:
            self._fast_calls.add(executable, call)
        return result

    def _decided_otherwise(
        self, outcomes: Outcomes | None, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The result of a call that decides ``outcomes`` first, by the program for that.

        It is eager's if the last program failed (None), two round a decision differently, or there are many already.
        """
        if not tell_more(outcomes, call.decided):
            return self.eager(*args, **kwargs)
        call = replace(call, decided=outcomes)
        with self._lock:
            executable = self._valid_executable(call)
            if executable is not None:
                self._programs.prefer(call.key, executable)
            elif len(known := self._programs.of(call.key)) >= MANY_TRACES:
                return self.eager(*args, **kwargs)
            else:
                self._note(next((e.decided_otherwise(outcomes) for e in known if e.decides(outcomes[:-1])), ""))
        return self._run(executable, call, args, kwargs)

    def _take(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """The call with these arguments, with run-time numbers for floats and for the ints that change."""
        call = self._signature.take(args, kwargs)
        if not (call.ints or call.numbers):
            return call
        with self._lock:
            call, traced = self._numbers.choose(call, self._is_known, self._trace)
            if traced is not None:
                self._traced[call.key] = traced
            else:
                warn_of_counters(self.name, self._numbers.values_needed(call), self._warned)
            return call

    def _is_known(self, call: Call) -> bool:
        return call.key in self._eager_keys or call.key in self._pending or self._valid_executable(call) is not None

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A @jit method: bound to its instance, with executables of its own for each instance."""
        return self if instance is None else bound_method(self, instance, owner)

    def __deepcopy__(self, memo: dict[int, Any]) -> JitFunction:
        """A method of the copied object; a function is its own copy, as in Python."""
        function = deepcopy(self.eager, memo)
        return self if function is self.eager else self.with_function(function)

    def __reduce__(self) -> str | tuple[Any, ...]:
        return pickled_as(self)

    def with_function(self, function: Callable[..., Any]) -> JitFunction:
        """``function`` with the options of this one."""
        new = JitFunction(function, donate=tuple(self.donate), **asdict(self.options))
        new._signature = Signature(function, (), tuple(n for n in self._signature.static_names))
        return new

    def _valid_executable(self, call: Call, wait: bool = False) -> Executable | None:
        """That of an earlier call with this signature whose environment is unchanged; ``wait`` for one that is compiled."""
        if call.key in self._pending:
            with self._lock:
                if (compiled := self._pending.take(call.key, wait)) is not None:
                    self._remember(compiled, call)
        for executable in self._programs.of(call.key):
            reason = executable.still_valid(call.leaves)
            if reason is not None:
                self._note(reason)
            elif executable.decides(call.decided):
                return executable
        return None

    def _note(self, reason: str) -> None:
        if not self._reasons or self._reasons[-1] != reason:
            self._reasons.append(reason)
            write_log("guards", f"{self.name}: {reason}")

    def _first_call(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Trace, compile, and run; the first result is checked against eager unless check="off"."""
        try:
            executable = (self._executable_or_later if self.options.background else self.executable_for)(call)
            if executable is not None:
                executable.operands(call.leaves)  # refuses inputs that share memory with what it changes
        except TraceError as error:
            if self._learns(error, call):
                return self._first_call(self._take(args, kwargs), args, kwargs)
            if self.options.fallback != "eager":
                raise
            self._programs.pop(call.key)
            self._eager_keys.add(call.key)
            self._info.fallbacks += 1
            warnings.warn(f"@jit function {self.name!r} runs eagerly: {error}", FallbackWarning, stacklevel=users_frame())
            return self.eager(*args, **kwargs)
        if executable is None:
            self._info.background += 1
            return self.eager(*args, **kwargs)
        if anomaly_detection.get():
            check_call(executable, call.leaves)
        if self.options.check_mode == "off" and not executable.traced.asked_class:  # which eager execution answers otherwise
            return self._unchecked(executable, call, args, kwargs)
        result, wrong = self._checked(executable, call, args, kwargs)
        executable.first_call_done = executable.agreed  # after an error of the function itself the next call is checked
        if wrong:
            without = executable.with_unfused(count=self._count, unfused=frozenset(wrong))
            without.first_call_done = True
            self._programs.replace(call.key, executable, without)
        elif wrong is None:
            self._programs.remove(call.key, executable)
            if call.runtime_ints:
                self._numbers.keep_static(call, call.runtime_ints)
            else:
                self._eager_keys.add(call.key)
        self._info.fallbacks += wrong is None or len(wrong) > 0
        return result

    def _unchecked(self, executable: Executable, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        executable.first_call_done = True
        if executable.traced.changes_python:
            return self.eager(*args, **kwargs)
        try:
            return executable.run(call.leaves)  # without a fast call, whose frame has memory of its own
        except DecidedOtherwise as other:
            return self._decided_otherwise(other.outcomes, call, args, kwargs)

    def _checked(
        self, executable: Executable, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Collection[int] | None]:
        """(the eager result, which kernels of ``executable`` are wrong; None: it must not be used).

        An error leaves the state unchanged.
        """
        before = Snapshot(executable.traced, call.leaves)
        try:
            with disable_jit():  # the reference calls other @jit functions eagerly, too
                result, wrong = check_first_call(executable, self.eager, args, kwargs, call.leaves)
        except BaseException:
            before.restore()
            raise
        executable.invalidate_donated(call.leaves)
        return result, wrong

    def executable_for(self, call: Call) -> Executable:
        """The executable for ``call``: traced and compiled now if there is no valid one yet."""
        with self._lock:
            executable = self._valid_executable(call, wait=True)
            return self._remember(self._trace_to_compile(call)(), call) if executable is None else executable

    def _executable_or_later(self, call: Call) -> Executable | None:
        """The executable for ``call``, or None while a thread compiles it."""
        with self._lock:
            executable = self._valid_executable(call)
            if executable is None and call.key not in self._pending:
                self._pending.start(call.key, self._trace_to_compile(call))
            return executable

    def _trace_to_compile(self, call: Call) -> Callable[[], Executable]:
        """Trace the function now; the result compiles its program."""
        if self._programs and call.key not in self._programs:
            self._note(f"new argument types: {key_difference(call.key, self._programs.newest())}")
        self._info.traces += 1
        self.options.target(device_of_arguments(call)).warm_up()
        donated = self._signature.positions(call, self.donate)
        traced = self._traced.pop(call.key, None) or self._trace(call)
        write_log("trace", f"{self.name}: {len(traced.graph.nodes)} ops from {Origin.of_code_of(self.eager).full()}")
        if traced.python_effects and "effects" not in self._warned:
            self._warned.add("effects")
            warn_of_effects(self.name, traced.python_effects)
        folder = config.read("JITGRAD_DUMP")
        watch = dump_to(folder, f"{self.name}.{self._info.traces}") if folder else ignore
        target = self.options.target(traced.place.device)
        return functools.partial(Executable, self.eager, traced, target, self._count, watch, donated)

    def _trace(self, call: Call) -> TraceResult:
        donated = self._signature.positions(call, self.donate)
        return trace_call(self.eager, self.name, call, donated)

    def _remember(self, executable: Executable, call: Call) -> Executable:
        write_log("kernels", f"{self.name}: {', '.join(k.name for k in executable.program.kernels) or 'none'}")
        traces = self._programs.add(call.key, executable, MANY_TRACES)
        dropped = self._programs.drop_unused({call.key, *self._fast_calls})
        if dropped and not self._info.dropped:
            warn_of_retraces(
                self.name,
                f"has programs for {len(self._programs)} kinds of arguments, the most that it keeps "
                "(JITGRAD_MAX_PROGRAMS); from now on the longest unused ones are dropped. The last one was made",
                self.why_retraced(),
            )
        self._info.dropped += dropped
        if (observe := on_compile.get()) is not None:
            observe(self, executable)
        if traces == MANY_TRACES and call.key not in self._warned:
            self._warned.add(call.key)
            warn_of_retraces(self.name, f"was traced {MANY_TRACES} times for the same arguments, last", self.why_retraced())
        return executable

    def _count(self, program: Program) -> None:
        self._info.programs += 1
        self._info.kernels_from_disk += program.new_from_disk
        self._info.kernels_compiled += program.new_kernels - program.new_from_disk

    def lookup(self, *args: Any, **kwargs: Any) -> Executable:
        """The executable for these arguments, compiled now if necessary; nothing that the function changes is changed."""
        return self._with_held(self.find_executable, args, kwargs)

    def find_executable(self, call: Call) -> Executable:
        """As `executable_for`, and it decides as ``call`` does."""
        while True:
            executable = self.executable_for(call)
            try:
                executable.check_decided(call.leaves)
            except DecidedOtherwise as other:
                if tell_more(other.outcomes, call.decided):
                    call = replace(call, decided=other.outcomes)
                    continue
            return executable

    def eject(self, path: str | os.PathLike[str], *args: Any, **kwargs: Any) -> Ejected:
        """Write the program for these arguments as a module of plain numba code, which runs without jitgrad.

        ``path`` names a Python file. Beside it go recorded arrays (``.npz``) and a test; see docs/eject.md. Nothing that
        the function would change is changed. Raises EjectError if it uses what cannot be written without jitgrad.
        """
        from jitgrad.jit.ejection import eject

        def write(call: Call) -> Ejected:
            traced = self._trace(call)
            return eject(path, self.eager, self.name, traced, call, self.options.target(traced.place.device).device)

        return self._with_held(write, args, kwargs)

    def _with_held(self, compute: Callable[[Call], _T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> _T:
        """What ``compute`` makes of the call, once every tensor that the function replaces is an argument of it."""
        call = self._take(args, kwargs)
        try:
            return compute(call)
        except TraceError as error:
            if not self._learns(error, call):
                raise
            return self._with_held(compute, args, kwargs)

    def _learns(self, error: TraceError, call: Call) -> bool:
        """Whether the trace of ``call`` failed with ``error`` for want of a place or a value that the next one has."""
        return self._signature.held.add_from(error) or self._numbers.add_from(error, call)

    def cache_info(self) -> CacheInfo:
        """What was counted: calls, traces, programs, kernels and others, since the last `clear`."""
        return self._info

    def why_retraced(self) -> list[str]:
        """Why new traces were made, oldest first."""
        return list(self._reasons)

    def clear(self) -> None:
        """Forget all executables and counters."""
        with self._lock:
            self._programs.clear()
            self._pending.clear()
            self._fast_calls.clear()
            self._eager_keys.clear()
            self._numbers.clear()
            self._reasons.clear()
            self._info = CacheInfo()

    def __repr__(self) -> str:
        return f"<jit {self.name}>"


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """What `jitgrad.jit` does, where it is described."""
    known = [*(JitFunction.__init__.__kwdefaults__ or ()), *(f.name for f in fields(JitOptions))]
    if unknown := [name for name in options if name not in known]:
        raise TypeError(f"@jit has no option {unknown[0]!r}{instead(unknown[0], known)}: it takes {', '.join(known)}")
    return JitFunction(function, **options) if function is not None else lambda f: JitFunction(f, **options)
