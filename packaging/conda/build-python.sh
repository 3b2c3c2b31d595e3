#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Python package without a library of its own, into the Python in $PREFIX: see recipe.yaml.
set -euo pipefail
"${PYTHON:-python}" -m pip install . --no-deps --no-build-isolation -vv -C cmake.define.CBGEN_WHEEL_LIBRARY=OFF
