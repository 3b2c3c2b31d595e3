#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# libcbgen, its headers and the tool, into $PREFIX: see recipe.yaml. With NVRTC also the kernels of families.
set -euo pipefail
cmake -S . -B build-conda -G Ninja ${CMAKE_ARGS:-} -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$PREFIX" \
  -DCMAKE_INSTALL_LIBDIR=lib -DCBGEN_TESTS=OFF
cmake --build build-conda -j "${CPU_COUNT:-2}"
nvrtc=$(compgen -G "$PREFIX/lib/libnvrtc.so.1[23]" | tail -1 || true)
if [ -n "$nvrtc" ]; then
  CBGEN_NVRTC=$nvrtc cmake --build build-conda --target cbgen_families
fi
cmake --install build-conda
