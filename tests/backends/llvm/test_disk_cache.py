"""The disk cache of kernels returns what was stored, and never runs damaged or planted files."""

import os
import subprocess
import sys
import warnings

import pytest

from jitgrad.backends.llvm import disk_cache
from jitgrad.core.errors import CacheWarning

ENTRY = disk_cache.Stored("def kernel(start, stop):\n    pass\n", b"\x7fELF\x00\nobject", ("fmodf",))
KEY = "1" * 64


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("JITGRAD_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "kernels"


def path_of(folder, key=KEY):
    return folder / f"{key}.kernel"


def test_what_is_stored_comes_back():
    assert disk_cache.load_entry(KEY) is None
    assert disk_cache.store_entry(KEY, ENTRY)

    assert disk_cache.load_entry(KEY) == ENTRY
    assert [e.key for e in disk_cache.entries()] == [KEY]
    assert disk_cache.info().entries == 1
    assert disk_cache.info().size == disk_cache.entries()[0].size > 0
    assert disk_cache.verify_entries() == []


def test_folder_is_private(folder):
    disk_cache.store_entry(KEY, ENTRY)

    assert folder.stat().st_mode & 0o777 == 0o700
    assert path_of(folder).stat().st_mode & 0o077 == 0


def test_folders_are_private_whatever_the_umask(folder):
    before = os.umask(0)
    try:
        assert disk_cache.store_entry(KEY, ENTRY)
    finally:
        os.umask(before)

    assert [path.stat().st_mode & 0o777 for path in (folder, folder.parent)] == [0o700, 0o700]


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o772])
def test_a_folder_below_one_that_others_can_write_is_not_used(folder, mode):
    disk_cache.store_entry(KEY, ENTRY)
    shared = folder.parent
    shared.chmod(mode)

    with pytest.warns(CacheWarning, match=f"other users can write {shared}.*chmod go-w {shared}"):
        assert disk_cache.load_entry(KEY) is None
    with pytest.warns(CacheWarning, match="other users can write"):
        assert not disk_cache.store_entry(KEY, ENTRY)
    assert str(shared) in disk_cache.info().problem


def test_a_shared_folder_with_a_sticky_bit_is_safe(folder):
    folder.parent.mkdir()
    folder.parent.chmod(0o1777)

    assert disk_cache.store_entry(KEY, ENTRY)
    assert disk_cache.load_entry(KEY) == ENTRY


def test_a_link_from_a_folder_that_others_can_write_is_not_followed(folder, tmp_path, monkeypatch):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    (tmp_path / "cache").mkdir()
    (shared / "link").symlink_to(tmp_path / "cache")
    monkeypatch.setenv("JITGRAD_CACHE_DIR", str(shared / "link"))

    with pytest.warns(CacheWarning, match=f"other users can write {shared}"):
        assert not disk_cache.store_entry(KEY, ENTRY)


def test_no_temporary_file_stays(folder):
    disk_cache.store_entry(KEY, ENTRY)

    assert os.listdir(folder) == [f"{KEY}.kernel"]


@pytest.mark.parametrize("position", [0, 20, 60, -1])
def test_flipped_byte_is_found(folder, position):
    disk_cache.store_entry(KEY, ENTRY)
    raw = bytearray(path_of(folder).read_bytes())
    raw[position] ^= 1
    path_of(folder).write_bytes(raw)

    assert [key for key, _ in disk_cache.verify_entries()] == [KEY]
    with pytest.warns(CacheWarning, match="compiled again"):
        assert disk_cache.load_entry(KEY) is None
    assert not path_of(folder).exists()


@pytest.mark.parametrize("length", [0, 5, 30, 60, 100])
def test_truncated_file_is_found(folder, length):
    disk_cache.store_entry(KEY, ENTRY)
    path_of(folder).write_bytes(path_of(folder).read_bytes()[:length])

    with pytest.warns(CacheWarning, match="compiled again"):
        assert disk_cache.load_entry(KEY) is None


def test_file_under_another_key_is_refused(folder):
    disk_cache.store_entry(KEY, ENTRY)
    path_of(folder).rename(path_of(folder, "2" * 64))

    with pytest.warns(CacheWarning, match="checksum"):
        assert disk_cache.load_entry("2" * 64) is None


def test_world_writable_folder_is_refused(folder):
    disk_cache.store_entry(KEY, ENTRY)
    folder.chmod(0o777)

    with pytest.warns(CacheWarning, match="written by other users"):
        assert disk_cache.load_entry(KEY) is None
    with pytest.warns(CacheWarning, match="not cached"):
        assert not disk_cache.store_entry(KEY, ENTRY)
    assert "other users" in disk_cache.info().problem


def test_foreign_folder_is_refused(folder, monkeypatch):
    disk_cache.store_entry(KEY, ENTRY)
    owner = folder.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)

    with pytest.warns(CacheWarning, match="another user"):
        assert disk_cache.load_entry(KEY) is None


def test_symlink_in_place_of_the_folder_is_refused(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.parent.mkdir()
    folder.symlink_to(tmp_path / "elsewhere")

    with pytest.warns(CacheWarning, match="not a folder"):
        assert disk_cache.load_entry(KEY) is None


def test_unwritable_disk_is_a_warning(folder, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    disk_cache.store_entry(KEY, ENTRY)
    monkeypatch.setattr(disk_cache.tempfile, "mkstemp", refuse)

    with pytest.warns(CacheWarning, match="Permission denied"):
        assert not disk_cache.store_entry("2" * 64, ENTRY)
    assert disk_cache.load_entry(KEY) == ENTRY


def test_folder_that_cannot_be_made_is_a_warning(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JITGRAD_CACHE_DIR", str(tmp_path / "file"))

    with pytest.warns(CacheWarning, match="not cached"):
        assert not disk_cache.store_entry(KEY, ENTRY)
    assert disk_cache.entries() == []


def test_oldest_go_first(folder, monkeypatch):
    keys = [f"{k}" * 64 for k in range(1, 6)]
    for age, key in enumerate(keys):
        disk_cache.store_entry(key, ENTRY)
        os.utime(path_of(folder, key), (age, age))
    size = disk_cache.entries()[0].size
    monkeypatch.setattr(disk_cache, "MAX_BYTES", 3 * size)

    disk_cache.store_entry("0" * 64, ENTRY)

    assert [e.key for e in disk_cache.entries()] == [keys[3], keys[4], "0" * 64]


def test_abandoned_temporary_files_are_removed(folder):
    disk_cache.store_entry(KEY, ENTRY)
    for name, age in ((".old.tmp", 1), (".new.tmp", None)):
        (folder / name).write_bytes(b"half")
        if age is not None:
            os.utime(folder / name, (age, age))

    disk_cache.store_entry("0" * 64, ENTRY)

    assert not (folder / ".old.tmp").exists()
    assert (folder / ".new.tmp").exists()


def test_clear():
    disk_cache.store_entry(KEY, ENTRY)
    disk_cache.store_entry("2" * 64, ENTRY)

    assert disk_cache.clear() == 2
    assert disk_cache.entries() == []
    assert disk_cache.load_entry(KEY) is None


WRITER = """
from jitgrad.backends.llvm import disk_cache
import sys
for k in range(60):
    key = f"{k % 10}" * 64
    disk_cache.store_entry(key, disk_cache.Stored(key * 50, key.encode() * 200, ()))
    for other in range(10):
        found = disk_cache.load_entry(f"{other}" * 64)
        assert found is None or found.source == f"{other}" * 64 * 50
"""


def test_two_processes_at_once():
    writers = [subprocess.Popen([sys.executable, "-W", "error", "-c", WRITER]) for _ in range(2)]

    assert [w.wait() for w in writers] == [0, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(disk_cache.entries()) == 10
        assert disk_cache.verify_entries() == []
