# SPDX-License-Identifier: Apache-2.0
"""Where this Python's own NVRTC is. libcbgen looks for one itself, but knows of a virtual environment only when that is
activated; this looks where `import` would, as NVIDIA's cuda-pathfinder does."""
from __future__ import annotations

import os
import sys
from typing import Iterator, Optional

WHEELS = (("cu13", "libnvrtc.so.13"), ("cuda_nvrtc", "libnvrtc.so.12"))  # the newest first


def places() -> Iterator[str]:
    """NVIDIA's wheels along sys.path, then the libraries of a conda environment."""
    for folder in sys.path:
        for wheel, name in WHEELS:
            yield os.path.join(os.path.abspath(folder), "nvidia", wheel, "lib", name)
    for _, name in WHEELS:
        yield os.path.join(sys.prefix, "lib", name)


def find_nvrtc() -> Optional[str]:
    """The file; None when $CBGEN_NVRTC names one, or there is none: the library then looks further."""
    if os.environ.get("CBGEN_NVRTC"):
        return None
    return next((place for place in places() if os.path.isfile(place)), None)
