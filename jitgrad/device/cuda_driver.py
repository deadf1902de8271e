"""The CUDA driver by ctypes: libcuda.so.1 or nvcuda.dll, and nothing of a CUDA toolkit."""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_ulonglong, c_void_p
from threading import local
from typing import Any
from weakref import WeakValueDictionary

from jitgrad.core.errors import CudaError, OutOfMemoryError
from jitgrad.core.fork import cached_property, fork_safe_lock
from jitgrad.device.cublas import Cublas, check_cublas_status
from jitgrad.device.cufft import TransformPlan, TransformShape, address_in, check_cufft_status, load_cufft
from jitgrad.device.driver import (
    COPY_MEMORY,
    LAUNCH_GRAPH,
    LAUNCH_KERNEL,
    PRODUCT_FUNCTIONS,
    TRANSFORM_FUNCTIONS,
    LoadableCode,
    MemoryInfo,
    StartWork,
)

INSTALL = (
    "A CUDA device needs an NVIDIA GPU and its driver (libcuda.so.1; nvcuda.dll on Windows), version 525 or newer, and "
    "for matrix products cuBLAS: pip install 'jitgrad[cuda12]', or 'jitgrad[cuda13]' for driver 580 and newer"
)
LOWEST_CAPABILITY = (8, 0)

_OUT_OF_MEMORY = 2
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76  # of CUdevice_attribute
_LOCAL_BYTES = 3  # of CUfunction_attribute
# of CUjit_option, CUstream_flags and CUstreamCaptureMode, in cuda.h
_ERROR_LOG, _ERROR_LOG_SIZE = 5, 6
_LOG_BYTES = 8192
_NON_BLOCKING = 1
_THIS_THREAD = 1  # other threads may go on allocating and copying while this one captures

# Argument types of the functions used; all return a CUresult. The suffixes are the ABI versions.
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (c_void_p,),
    "cuDeviceGetCount": (c_void_p,),
    "cuDeviceGet": (c_void_p, c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (c_void_p, c_int, c_int),
    "cuDevicePrimaryCtxRetain": (c_void_p, c_int),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxSynchronize": (),
    "cuMemGetInfo_v2": (c_void_p, c_void_p),
    "cuMemAlloc_v2": (c_void_p, c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemcpyHtoD_v2": (c_uint64, c_void_p, c_size_t),
    "cuMemcpyDtoH_v2": (c_void_p, c_uint64, c_size_t),
    "cuMemcpyDtoDAsync_v2": (c_uint64, c_uint64, c_size_t, c_void_p),
    "cuMemsetD8Async": (c_uint64, c_uint, c_size_t, c_void_p),
    "cuMemsetD16Async": (c_uint64, c_uint, c_size_t, c_void_p),
    "cuMemsetD32Async": (c_uint64, c_uint, c_size_t, c_void_p),
    "cuModuleLoadDataEx": (c_void_p, c_char_p, c_uint, c_void_p, c_void_p),
    "cuModuleGetFunction": (c_void_p, c_void_p, c_char_p),
    "cuStreamCreate": (c_void_p, c_uint),
    "cuStreamBeginCapture_v2": (c_void_p, c_int),
    "cuStreamEndCapture": (c_void_p, c_void_p),
    "cuGraphInstantiateWithFlags": (c_void_p, c_void_p, c_ulonglong),
    "cuGraphDestroy": (c_void_p,),
    "cuGraphExecDestroy": (c_void_p,),
    "cuEventCreate": (c_void_p, c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventSynchronize": (c_void_p,),
    "cuEventElapsedTime": (c_void_p, c_void_p, c_void_p),
    "cuEventDestroy_v2": (c_void_p,),
    "cuFuncGetAttribute": (c_void_p, c_int, c_void_p),
    "cuStreamWaitEvent": (c_void_p, c_void_p, c_uint),
    "cuGetErrorName": (c_int, c_void_p),
    "cuGetErrorString": (c_int, c_void_p),
}


def load_library(name: str | None = None) -> Any:
    """The driver's library, with its argument types. Raises CudaError if there is none."""
    name = name or ("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    try:
        library = ctypes.CDLL(name)
        for function, types in _SIGNATURES.items():
            getattr(library, function).argtypes = types
        for function in (LAUNCH_KERNEL, COPY_MEMORY, LAUNCH_GRAPH):
            getattr(library, function)
    except (OSError, AttributeError) as error:
        raise CudaError(f"no CUDA driver was found ({error}). {INSTALL}") from None
    return library


def check_status(library: Any, function: str, status: int) -> None:
    """Raise the error for the CUresult ``status`` that ``function`` returned, unless it is 0."""
    if status == 0:
        return
    texts = []
    for explain in (library.cuGetErrorName, library.cuGetErrorString):
        text = c_char_p()
        explain(status, byref(text))
        texts.append((text.value or b"unknown").decode())
    kind = OutOfMemoryError if status == _OUT_OF_MEMORY else CudaError
    raise kind(f"{function} failed: {texts[0]} ({status}): {texts[1]}")


class CudaDriver:
    """Device 0 by its primary context, which it shares with CuPy, torch and others."""

    def __init__(self, library: Any = None) -> None:
        self._library = load_library() if library is None else library
        self._call("cuInit", 0)
        count = c_int()
        self._call("cuDeviceGetCount", byref(count))
        if not count.value:
            raise CudaError(f"the CUDA driver sees no device (CUDA_VISIBLE_DEVICES may hide it). {INSTALL}")
        device = c_int()
        self._call("cuDeviceGet", byref(device), 0)
        self._device = device.value
        name = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", name, len(name), self._device)
        self.name: str = name.value.decode()
        self.capability: tuple[int, int] = self.attribute(_CAPABILITY_MAJOR), self.attribute(_CAPABILITY_MINOR)
        if self.capability < LOWEST_CAPABILITY:
            raise CudaError(
                f"{self.name} has compute capability {'.'.join(map(str, self.capability))}; jitgrad needs "
                f"{'.'.join(map(str, LOWEST_CAPABILITY))} (Ampere, 2020) or newer"
            )
        context = c_void_p()
        self._call("cuDevicePrimaryCtxRetain", byref(context), self._device)
        self._context = context
        self._threads = local()
        self._process = os.getpid()
        self._capture_lock = fork_safe_lock()
        self.libraries_lock: Any = fork_safe_lock()
        self._plans: WeakValueDictionary[TransformShape, TransformPlan] = WeakValueDictionary()

    def _call(self, function: str, *args: Any) -> None:
        check_status(self._library, function, getattr(self._library, function)(*args))

    def _run(self, function: str, *args: Any) -> None:
        """`_call` with the context current in this thread."""
        self.bind()
        self._call(function, *args)

    def bind(self) -> None:
        if os.getpid() != self._process:
            raise CudaError(
                "CUDA was used before this process was forked, and a child cannot go on using it. Start "
                "processes with multiprocessing.get_context('spawn'), or use CUDA only in the children"
            )
        if not getattr(self._threads, "bound", False):
            self._call("cuCtxSetCurrent", self._context)
            self._threads.bound = True

    # --- memory -----------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> int:
        address = c_uint64()
        self._run("cuMemAlloc_v2", byref(address), nbytes)
        return address.value

    def free(self, address: int) -> None:
        self._run("cuMemFree_v2", address)

    def copy_to_device(self, address: int, host: int, nbytes: int) -> None:
        self._run("cuMemcpyHtoD_v2", address, host, nbytes)

    def copy_to_host(self, host: int, address: int, nbytes: int) -> None:
        self._run("cuMemcpyDtoH_v2", host, address, nbytes)

    def copy_on_device(self, address: int, source: int, nbytes: int) -> None:
        self._run("cuMemcpyDtoDAsync_v2", address, source, nbytes, None)

    def fill(self, address: int, pattern: int, width: int, count: int) -> None:
        self._run(f"cuMemsetD{8 * width}Async", address, pattern, count, None)

    def memory_info(self) -> MemoryInfo:
        free, total = c_size_t(), c_size_t()
        self._run("cuMemGetInfo_v2", byref(free), byref(total))
        return MemoryInfo(free.value, total.value)

    # --- device and kernels -----------------------------------------------------------------------

    def attribute(self, number: int) -> int:
        value = c_int()
        self._call("cuDeviceGetAttribute", byref(value), number, self._device)
        return value.value

    @property
    def version(self) -> tuple[int, int]:
        """The newest CUDA version that this driver supports."""
        version = c_int()
        self._call("cuDriverGetVersion", byref(version))
        return version.value // 1000, version.value % 1000 // 10

    def load(self, code: LoadableCode) -> int:
        """A handle of the function; the driver compiles the PTX now, and keeps the result on disk."""
        log = ctypes.create_string_buffer(_LOG_BYTES)
        options = (c_int * 2)(_ERROR_LOG, _ERROR_LOG_SIZE)
        values = (c_void_p * 2)(ctypes.addressof(log), _LOG_BYTES)
        module, function = c_void_p(), c_void_p()
        try:
            self._run("cuModuleLoadDataEx", byref(module), code.ptx.encode(), 2, options, values)
        except CudaError as error:
            raise type(error)(f"{error}. The driver's compiler says: {log.value.decode(errors='replace')}") from None
        self._run("cuModuleGetFunction", byref(function), module, code.entry.encode())
        return function.value or 0

    def local_bytes(self, function: int) -> int:
        value = c_int()
        self._run("cuFuncGetAttribute", byref(value), _LOCAL_BYTES, function)
        return value.value

    # --- calls by address -------------------------------------------------------------------------

    @cached_property
    def _cublas(self) -> Cublas:
        self.bind()
        return Cublas()

    def function(self, name: str) -> int:
        if name in PRODUCT_FUNCTIONS:
            return self._cublas.function(name)
        if name in TRANSFORM_FUNCTIONS:
            return address_in(self._cufft, name)
        return ctypes.cast(getattr(self._library, name), c_void_p).value or 0

    def products(self) -> int:
        return self._cublas.handle

    @cached_property
    def _cufft(self) -> Any:
        return load_cufft()

    @property
    def has_transforms(self) -> bool:
        return self._cufft is not None

    def transform_plan(self, shape: TransformShape) -> TransformPlan:
        with self.libraries_lock:
            plan = self._plans.get(shape)
            if plan is None:
                plan = self._plans[shape] = TransformPlan(self._cufft, shape, self.bind)
            return plan

    def check(self, function: str, status: int) -> None:
        if function in PRODUCT_FUNCTIONS:
            check_cublas_status(function, status)
        elif function in TRANSFORM_FUNCTIONS:
            check_cufft_status(function, status)
        else:
            check_status(self._library, function, status)

    # --- graphs -----------------------------------------------------------------------------------

    @cached_property
    def _capture_stream(self) -> int:
        """A stream that the default stream does not wait for: nothing runs in it."""
        stream = c_void_p()
        self._run("cuStreamCreate", byref(stream), _NON_BLOCKING)
        return stream.value or 0

    @cached_property
    def _capture_products(self) -> int:
        """cuBLAS on that stream. Graphs run one after the other, so one piece of memory serves all of them."""
        return self._cublas.on_stream(self._capture_stream, self.allocate)

    def capture(self, record: StartWork, products: bool) -> int:
        graph, executable = c_void_p(), c_void_p()
        with self._capture_lock:
            stream, handle = self._capture_stream, self._capture_products if products else 0
            self._run("cuStreamBeginCapture_v2", stream, _THIS_THREAD)
            try:
                record(stream, handle)
                self._call("cuStreamEndCapture", stream, byref(graph))
            except BaseException:
                self._library.cuStreamEndCapture(stream, byref(graph))  # whose status adds nothing to the error
                raise
        try:
            self._call("cuGraphInstantiateWithFlags", byref(executable), graph, 0)
        finally:
            self._call("cuGraphDestroy", graph)
        return executable.value or 0

    def destroy_graph(self, graph: int) -> None:
        self._run("cuGraphExecDestroy", graph)

    def synchronize(self) -> None:
        self._run("cuCtxSynchronize")

    # --- events -----------------------------------------------------------------------------------

    def record_event(self) -> int:
        event = c_void_p()
        self._run("cuEventCreate", byref(event), 0)
        self._run("cuEventRecord", event, None)
        return event.value or 0

    def wait_in_stream(self, stream: int, event: int) -> None:
        self._run("cuStreamWaitEvent", stream, event, 0)

    def milliseconds_between(self, start: int, end: int) -> float:
        self._run("cuEventSynchronize", end)
        elapsed = c_float()
        self._run("cuEventElapsedTime", byref(elapsed), start, end)
        return elapsed.value

    def destroy_event(self, event: int) -> None:
        self._run("cuEventDestroy_v2", event)
