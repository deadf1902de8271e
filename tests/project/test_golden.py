"""The golden fixture: it compares, reports, refuses a missing file, and writes when asked to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def test_golden_compares_with_its_file(golden: Any, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("one\ntwo\n")
    text = type(golden)(tmp_path / "text.txt", False)

    assert text == "one\ntwo"
    assert text != "one\nthree"
    assert str(golden.path).endswith("golden/project/test_golden/test_golden_compares_with_its_file.txt")
    assert golden == "the fixture insists on being used"


def test_golden_writes_when_it_updates(golden: Any, tmp_path: Path) -> None:
    fresh = type(golden)(tmp_path / "deep" / "text.txt", True)

    assert fresh == "new text\n"

    assert (tmp_path / "deep" / "text.txt").read_text() == "new text\n"
    assert golden == "the fixture insists on being used"


def test_a_missing_golden_text_fails_and_says_how_to_make_it(golden: Any) -> None:
    missing = type(golden)(golden.path.with_name("missing.txt"), False)

    with pytest.raises(pytest.fail.Exception, match="--update-golden"):
        assert missing == "anything"
    assert golden == "the fixture insists on being used"
