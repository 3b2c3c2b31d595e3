#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fills .gpu/ with all that bench/gpu.sh needs on a GPU machine that cannot build cbgen: the tool, libcbgen with
# its families' kernels, the compiled part of the Python package, the shared libraries that they need (but glibc), the cuSPARSE to measure against, and matrices.
#
#   bench/pack_gpu.sh [MATRIX-DIRECTORY [MiB]]
#
# MATRIX-DIRECTORY holds matrix files, taken as they are, the largest first, while the folder stays below MiB (49). A list
# of directories, separated by colons, is taken in turn. What finds no room goes to .gpu-2/, .gpu-3/ and so on, each below
# MiB: for later calls on the same machine, with MATRICES_MORE=.gpu-2. Matrices of tests/data/corpus are left out: they
# travel with the source tree. Three matrices are packed for bench/examples.sh, too, whose reader is plain.
#
# CUSPARSE is the version of the PyPI wheel nvidia-cusparse (12.9.4.2; empty: none, the GPU machine's own is measured
# against); of its code, that for ARCH (90 for sm_90) is kept. What was downloaded or packed stays in build/.
#
# PETSC is a PETSc with CUDA that adapters/petsc/build_petsc.sh installed: its library and cbgen's plug-in for it are packed
# for the step petsc. CUDA's libraries (cuBLAS, cuSPARSE, cuSOLVER, …) are the GPU machine's. MPI is the directory of an
# Open MPI that may be moved (OPAL_PREFIX), of the major version that PETSc was built with: packed for PETSC_RANKS.
set -euo pipefail
cd "$(dirname "$0")/.."
matrices=${1:-}
cusparse=${CUSPARSE-12.9.4.2}
arch=${ARCH:-90}
limit=$(( ${2:-49} * 1024 * 1024 ))
build=${BUILD:-$PWD/build}/gpu
out=.gpu
programs="bench_warm_start bench_cold_start bench_update bench_device_pack bench_solve bench_lp bench_heads bench_api_check bench_soak bench_campaign
  bench_candidates bench_shares"
mkdir -p "$(dirname "$build")"
with_petsc=(-DCBGEN_PETSC=OFF)
if [ -n "${PETSC:-}" ]; then
  export PKG_CONFIG_PATH=$PETSC/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
  with_petsc=(-DCBGEN_PETSC=ON)
  programs="$programs bench_petsc bench_petsc_scaling"
fi

# The tool and libcbgen find their libraries in the folder lib beside them. DT_RPATH, unlike DT_RUNPATH, also counts
# for the libraries that libraries need.
cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DCBGEN_TESTS=OFF "-DCBGEN_FAMILIES=sm_$arch" "${with_petsc[@]}" '-DCMAKE_BUILD_RPATH=$ORIGIN/lib' \
  -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags -DCMAKE_SHARED_LINKER_FLAGS=-Wl,--disable-new-dtags \
  >"$build.log" 2>&1 &&
  cmake --build "$build" -j "$(nproc)" --target cbgen_tool cbgen cbgen_families cbgen_python_calls ${PETSC:+cbgen_petsc} $programs >>"$build.log" 2>&1 ||
  { tail -40 "$build.log" >&2; exit 1; }

rm -rf "$out" "$out"-[0-9]*
mkdir -p "$out/lib" "$out/matrices"
install -s -m 755 "$build/cbgen" "$out/cbgen"
for name in $programs; do install -s -m 755 "$build/bench/$name" "$out/$name"; done
install -s -m 755 "$build/libcbgen.so.0.1" "$out/libcbgen.so.0.1"
install -s -m 755 "$build/_calls.abi3.so" "$out/_calls.abi3.so"
cp "$build/families-sm_$arch.bin" "$out/"
if [ -n "${PETSC:-}" ]; then
  install -s -m 755 "$build/libcbgen_petsc.so" "$out/libcbgen_petsc.so"
  for library in "$PETSC"/lib/libpetsc.so.*.*.*; do install -s -m 755 "$library" "$out/$(basename "${library%.*}")"; done
  ldd "$build/bench/bench_petsc" | awk '$2 == "=>" && $3 ~ /\/lib(blas|lapack|gfortran|quadmath)/ { print $3 }' |
    while read -r library; do cp -L "$library" "$out/lib/$(basename "$library")"; done
fi
if [ -n "${MPI:-}" ]; then
  mkdir "$out/mpi"
  for part in bin lib share etc; do [ ! -d "$MPI/$part" ] || cp -a "$MPI/$part" "$out/mpi/"; done
fi
ldd "$build/cbgen" "$build/libcbgen.so.0.1" | awk '$2 == "=>" { print $3 }' |
  grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so' | while read -r library; do
  cp -L "$library" "$out/lib/$(basename "$library")"
done
chmod -R u+w "$out/lib"
# one file of ICU is 30 MiB of tables: packed, all of them take a fifth
packed=$build-lib-$(cat "$out"/lib/* | sha256sum | cut -c 1-16).tar.xz
if [ ! -e "$packed" ]; then
  tar -C "$out" -cf - lib | xz -9 -T0 >"$packed.part"
  mv "$packed.part" "$packed"
fi
cp "$packed" "$out/lib.tar.xz"
rm -rf "${out:?}/lib"

# The wheel is 220 MiB, most of it for other GPUs; xz takes a minute.
pack_cusparse() {
  local packed=$build-cusparse-$cusparse-sm_$arch.tar.xz work
  if [ ! -e "$packed" ]; then
    work=$(mktemp -d "$build-cusparse.XXXXXX")
    python3 -m pip download -q --no-deps --only-binary=:all: --platform manylinux2014_x86_64 -d "$work" \
      "nvidia-cusparse==$cusparse" 2>"$work/log" || { cat "$work/log" >&2; return 1; }
    mkdir "$work/wheel" "$work/cusparse"
    python3 -m zipfile -e "$work"/*.whl "$work/wheel"
    bench/keep_arch.py "$(find "$work/wheel" -name libcusparse.so.12)" "$work/cusparse/libcusparse.so.12" "$arch"
    tar -C "$work" -cf - cusparse | xz -T0 >"$work/packed"
    mv "$work/packed" "$packed"
    rm -rf "$work"
  fi
  cp "$packed" "$out/cusparse.tar.xz"
}
[ -z "$cusparse" ] || pack_cusparse

list=$build-matrices
IFS=: read -ra folders <<<"$matrices"
for folder in "${folders[@]}"; do
  find "$(realpath "$folder")" -maxdepth 1 -type f -regextype posix-extended \
    -regex '.*\.(mtx|npz)(\.(gz|zst|xz|bz2))?' -printf '%s\t%p\n' | sort -rn | cut -f2
done >"$list"

for name in G2_circuit wang4 soc-Epinions1_und; do
  file=$(grep -m 1 "/$name\.mtx\.zst$" "$list") || continue
  mkdir -p "$out/examples-matrices"
  zstd -qdc "$file" | gzip -9 >"$out/examples-matrices/$name.mtx.gz"
done

# take FOLDER BESIDE FILE: copies it into FOLDER unless BESIDE, which travels with it, becomes too large
take() {
  [ $(($(du -sb "$2" | cut -f1) + $(stat -c %s "$3"))) -le "$limit" ] || return
  install -m 644 "$3" "$1/$(basename "$3")"
}

while read -r file; do
  [ ! -e "tests/data/corpus/$(basename "$file")" ] || continue
  take "$out/matrices" "$out" "$file" && continue
  part=2
  mkdir -p "$out-2"
  until take "$out-$part" "$out-$part" "$file"; do
    [ -n "$(ls "$out-$part")" ] || { echo "'$file' is larger than $limit bytes" >&2; exit 1; }
    part=$((part + 1))
    mkdir -p "$out-$part"
  done
done <"$list"

for folder in "$out"-[0-9]*; do
  [ ! -d "$folder" ] || echo "$folder: $(du -sm "$folder" | cut -f1) MiB, $(ls "$folder" | wc -l) matrices"
done
echo "$out: $(du -sm "$out" | cut -f1) MiB, $(ls "$out/matrices" | wc -l) matrices, $(git ls-files -z | xargs -0 du -cb 2>/dev/null | tail -1 | cut -f1 | awk '{ printf "%d", $1 / 1048576 }') MiB in the source tree"
