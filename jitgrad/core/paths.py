"""Checks of paths that the user names."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def require_folder(what: str, path: str | os.PathLike[str]) -> None:
    """Raise FileNotFoundError, which names ``what`` and the folder, if ``path`` would lie in a folder that does not exist."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"{what}: there is no folder for {Path(path).name}; create it", str(folder))
