# SPDX-License-Identifier: Apache-2.0
"""Files that appear whole or not at all, by the rules of the tool's `-o`."""
from __future__ import annotations

import os
import secrets
import stat
from typing import Union


def put(path: Union[str, os.PathLike[str]], content: bytes) -> None:
    """Writes a file: a new one with the permissions of any new file, or one that replaces the old and keeps its
    permissions and owner. A link is followed, a device or a pipe is written to. OSError: the old file is untouched."""
    place = os.path.realpath(path)
    try:
        before = os.stat(path)
    except FileNotFoundError:
        before = None
    if before is not None and not stat.S_ISREG(before.st_mode):
        with open(path, "wb") as file:
            file.write(content)
        return
    if before is not None and not os.access(place, os.W_OK):
        raise PermissionError(f"'{os.fspath(path)}' may not be written")
    folder, name = os.path.split(place)
    draft = os.path.join(folder, f"{name[:200]}.tmp-{secrets.token_hex(8)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666 if before is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            if before is not None:
                keep_permissions(file.fileno(), before)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, place)
    except BaseException:
        os.unlink(draft)
        raise


def keep_permissions(handle: int, before: os.stat_result) -> None:
    mode = stat.S_IMODE(before.st_mode)
    try:
        os.fchown(handle, before.st_uid, before.st_gid)
    except PermissionError:
        mode &= 0o777  # another's rights are not given to whoever executes the file
    os.fchmod(handle, mode)
