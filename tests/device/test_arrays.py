"""Arrays in device memory on the fake driver: views, copies, the pool, and exchange with other libraries."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from jitgrad.backends.cuda_target.emulated_device import emulate
from jitgrad.core.device_array import VIEWS, DeviceArray
from jitgrad.core.errors import CudaError, DeviceError, OperandError, OutOfMemoryError
from jitgrad.device import exchange
from jitgrad.device.cuda import using_driver
from jitgrad.device.cuda_device import CudaDevice
from jitgrad.ops import movement
from jitgrad.testing.fake_driver import FIRST_ADDRESS, FakeDriver


@pytest.fixture
def device() -> Iterator[CudaDevice]:
    with using_driver(FakeDriver(emulate, total=1 << 20)) as device:
        yield device


def driver_of(device: CudaDevice) -> FakeDriver:
    assert isinstance(device.driver, FakeDriver)
    return device.driver


VIEW_CASES = [
    (movement.BROADCAST_TO, {"shape": (5, 2, 3, 4)}),
    (movement.RESHAPE, {"shape": (4, 6)}),
    (movement.PERMUTE_DIMS, {"axes": (2, 0, 1)}),
    (movement.EXPAND_DIMS, {"axis": (0, 2)}),
    (movement.SLICE, {"index": ((1, -1, 2), (0, 2, 2))}),
]


@pytest.mark.parametrize(("op", "attrs"), VIEW_CASES, ids=lambda x: getattr(x, "name", ""))
def test_view_ops_show_the_elements_that_numpy_shows(device: CudaDevice, op: Any, attrs: dict[str, Any]) -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    array = device.from_host(x)

    view = VIEWS[op.name](array, **attrs)

    assert view.owner is array.owner
    np.testing.assert_array_equal(device.to_host(view), op.eager(x, **attrs))


def test_squeezing_drops_axes(device: CudaDevice) -> None:
    assert device.from_host(np.zeros((1, 3, 1))).squeeze((0, 2)).shape == (3,)


def test_reshaping_a_part_is_a_view_where_numpy_makes_one(device: CudaDevice) -> None:
    x = np.arange(24.0).reshape(4, 6)
    part = device.from_host(x).slice(((0, 2, 2),))

    split = part.reshape((2, 3, 2))

    assert split.owner is part.owner
    np.testing.assert_array_equal(device.to_host(split), x[::2].reshape(2, 3, 2))


def test_reshaping_what_is_not_in_order_copies(device: CudaDevice) -> None:
    x = np.arange(6.0).reshape(2, 3)
    array = device.from_host(x).transpose((1, 0))

    flat = array.reshape((6,))

    assert flat.owner is not array.owner
    np.testing.assert_array_equal(device.to_host(flat), x.T.reshape(6))


def test_a_strided_part_is_written_and_nothing_beside_it(device: CudaDevice) -> None:
    x = np.zeros((3, 4), np.float32)
    array = device.from_host(x)

    device.copy_into(array.slice(((0, 2, 2), (3, -2, 2))), np.array([[1, 2], [3, 4]], np.float32))

    x[0::2, 3::-2] = [[1, 2], [3, 4]]
    np.testing.assert_array_equal(device.to_host(array), x)


def test_an_array_can_be_copied_over_itself_reversed(device: CudaDevice) -> None:
    array = device.from_host(np.arange(5))

    device.copy_into(array, array.slice(((4, -1, 5),)))

    assert device.to_host(array).tolist() == [4, 3, 2, 1, 0]


@pytest.mark.parametrize("value", [0.0, 1.5, -0.0, np.nan])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i8", "?"])
def test_full_repeats_a_value(device: CudaDevice, value: float, dtype: str) -> None:
    if np.isnan(value) and dtype[0] != "f":
        value = 3

    array = device.full((3, 2), value, np.dtype(dtype))

    expected = np.full((3, 2), value, dtype)
    assert device.to_host(array).tobytes() == expected.tobytes()


def test_empty_arrays_need_no_copies(device: CudaDevice) -> None:
    array = device.from_host(np.zeros((0, 3)))

    assert device.to_host(device.copy(array)).shape == (0, 3)
    assert driver_of(device).counts.copies_to_device == 0


def test_numpy_cannot_read_a_device_array_by_accident(device: CudaDevice) -> None:
    with pytest.raises(DeviceError, match=r"\.cpu\(\)"):
        np.asarray(device.from_host(np.zeros(3)))


def test_memory_of_dead_arrays_is_used_again(device: CudaDevice) -> None:
    first = device.from_host(np.zeros(1000))
    address = first.address
    view = first.slice(((1, 1, 3),))
    del first

    assert device.empty((1000,), np.dtype(float)).address != address  # the view still shows it
    del view
    assert device.empty((1000,), np.dtype(float)).address == address or device.pool.stats().reuses == 1


def test_a_training_loop_allocates_nothing_after_its_first_steps(device: CudaDevice) -> None:
    def step() -> None:
        arrays = [device.empty((100, k), np.dtype(np.float32)) for k in (1, 2, 2, 3)]
        assert len(arrays) == 4

    step()
    step()
    before = driver_of(device).counts.allocations
    for _ in range(20):
        step()

    assert driver_of(device).counts.allocations == before


@pytest.mark.parametrize("count", [1, 40, 300])
def test_a_group_grows_only_while_all_of_its_blocks_are_live(device: CudaDevice, count: int) -> None:
    """Searches in vain are spared for one allocation in 64."""
    live = [device.empty((200,), np.dtype(np.float32)) for _ in range(count)]
    for _ in range(5):
        live.append(device.empty((200,), np.dtype(np.float32)))
        del live[: len(live) // 2]
        live += [device.empty((200,), np.dtype(np.float32)) for _ in range(count - len(live))]

    assert driver_of(device).counts.allocations <= count + 1 + count // 64


def test_idle_blocks_of_the_same_size_survive_a_search_for_memory(device: CudaDevice) -> None:
    """What is given back is given back once; the next array of a size finds a block, or the driver's memory."""
    first = [device.empty((100_000,), np.dtype(np.uint8)) for _ in range(5)]
    del first[1:]
    big = device.empty((700_000,), np.dtype(np.uint8))
    del big
    again = [device.empty((100_000,), np.dtype(np.uint8)) for _ in range(8)]

    assert len({x.address for x in (*first, *again)}) == 9
    assert device.pool.stats().bytes_held == device.pool.stats().bytes_in_use


def test_out_of_memory_says_what_is_live(device: CudaDevice) -> None:
    kept = device.empty((100, 1000), np.dtype(np.float32))

    with pytest.raises(OutOfMemoryError, match=r"(?s)f64\[200000\].*largest of 1: f32\[100,1000\].*smaller batches"):
        device.empty((200000,), np.dtype(float))
    assert kept.shape == (100, 1000)


def test_memory_that_is_kept_for_later_goes_when_memory_runs_out(device: CudaDevice) -> None:
    class Keeps:
        def __init__(self, nbytes: int) -> None:
            self.arrays = [device.empty((nbytes,), np.dtype(np.uint8))]

        def release(self) -> None:
            self.arrays.clear()

    first, last = Keeps(400_000), Keeps(400_000)
    device.pool.add_holder(first)
    device.pool.add_holder(last, last=True)

    one = device.empty((500_000,), np.dtype(np.uint8))
    assert (len(first.arrays), len(last.arrays)) == (0, 1)
    other = device.empty((400_000,), np.dtype(np.uint8))
    assert last.arrays == []
    assert one.address != other.address


def test_free_memory_of_other_sizes_is_given_back_before_an_allocation_fails(device: CudaDevice) -> None:
    device.empty((600_000,), np.dtype(np.uint8))
    array = device.empty((600_000 // 2, 3), np.dtype(np.uint8))

    assert array.nbytes == 900_000
    assert driver_of(device).counts.frees == 1


def test_statistics_count_bytes(device: CudaDevice) -> None:
    array = device.empty((1024,), np.dtype(np.float32))
    stats = device.pool.stats()

    assert stats.bytes_in_use == stats.bytes_held == array.nbytes
    assert stats.bytes_on_device - stats.bytes_free_on_device == array.nbytes


def test_a_host_address_is_refused(device: CudaDevice) -> None:
    with pytest.raises(CudaError, match="is a host address"):
        device.driver.copy_on_device(FIRST_ADDRESS, np.zeros(3).ctypes.data, 8)


# --- other libraries --------------------------------------------------------------------------------


class Foreign:
    """An array of another library, which shares ``array`` by DLPack."""

    def __init__(self, array: DeviceArray, place: tuple[int, int] = (exchange.CUDA_DEVICE, 0)) -> None:
        self.array, self.place = array, place
        self.driver: Any = array.device.driver  # type: ignore[attr-defined]
        self.streams: list[int | None] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.place

    def __dlpack__(self, stream: int | None = None) -> Any:
        self.streams.append(stream)
        return exchange.to_dlpack(self.array, self.driver, stream)


@pytest.mark.parametrize("dtype", "?bhilBHILefd")
def test_dlpack_shares_memory_and_keeps_it_alive(device: CudaDevice, dtype: str) -> None:
    x = np.arange(6).reshape(2, 3).astype(dtype)
    array = device.from_host(x).transpose((1, 0))
    foreign = Foreign(array)

    imported = exchange.array_from_dlpack(device, foreign)
    assert foreign.streams == [1]
    assert (imported.address, imported.strides, imported.dtype) == (array.address, array.strides, array.dtype)
    del array, foreign
    gc.collect()
    device.empty((2, 3), np.dtype(dtype))
    np.testing.assert_array_equal(device.to_host(imported), x.T)


def test_memory_returns_to_the_pool_when_the_consumer_is_done(device: CudaDevice) -> None:
    before = len(exchange._exported)
    imported = exchange.array_from_dlpack(device, Foreign(device.from_host(np.zeros(100))))
    assert device.pool.stats().bytes_in_use > 0
    del imported
    capsule = exchange.to_dlpack(device.from_host(np.zeros(100)), device.driver)
    del capsule  # no one consumed it
    assert device.pool.trim() > 0

    assert len(exchange._exported) == before
    assert device.pool.stats().bytes_in_use == 0


def test_consumers_that_refuse_device_memory_raise_their_error(device: CudaDevice, capsys: pytest.CaptureFixture[str]) -> None:
    """A destructor in Python would run while NumPy's exception is on its way, and lose it."""
    array = device.from_host(np.arange(6.0).reshape(2, 3).T)

    class Owner:
        def __dlpack__(self, **keywords: Any) -> Any:
            return device.to_dlpack(array, None, **keywords)

        def __dlpack_device__(self) -> tuple[int, int]:
            return device.dlpack_device

    with pytest.raises(RuntimeError, match="device"):
        np.from_dlpack(Owner())
    np.testing.assert_array_equal(np.from_dlpack(Owner(), device="cpu"), np.arange(6.0).reshape(2, 3).T)
    with pytest.raises(BufferError, match=r"cannot be shared with device \(1, 0\)"):
        np.from_dlpack(Owner(), device="cpu", copy=False)
    assert capsys.readouterr().err == ""
    assert device.pool.trim() >= 0


def test_another_stream_waits_for_the_work_so_far(device: CudaDevice) -> None:
    exchange.to_dlpack(device.from_host(np.zeros(3)), device.driver, stream=42)

    assert [stream for stream, _ in driver_of(device).waits] == [42]


def test_memory_of_another_device_is_refused(device: CudaDevice) -> None:
    with pytest.raises(OperandError, match=r"is on device \(1, 0\)"):
        exchange.array_from_dlpack(device, Foreign(device.from_host(np.zeros(3)), place=(1, 0)))


def test_cuda_array_interface_goes_both_ways(device: CudaDevice) -> None:
    array = device.from_host(np.arange(6.0).reshape(2, 3)).transpose((1, 0))

    class Holder:
        __cuda_array_interface__ = exchange.interface_of(array)

    imported = exchange.array_from_interface(device, Holder())
    assert (imported.address, imported.shape, imported.strides) == (array.address, array.shape, array.strides)
    contiguous = exchange.interface_of(array.copy())
    assert contiguous["strides"] is None
    assert contiguous["typestr"] == "<f8"
