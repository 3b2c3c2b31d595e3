#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fills .gpu/ with all that bench/gpu.sh needs on a GPU machine that cannot build cbgen: the tool, libcbgen, the shared
# libraries that they need (but glibc), and matrices.
#
#   bench/pack_gpu.sh [MATRIX-DIRECTORY [MiB]]
#
# MATRIX-DIRECTORY holds matrix files, taken as they are, the largest first, while the folder stays below MiB (49).
# Matrices of tests/data/corpus are left out: they travel with the source tree. Three of MATRIX-DIRECTORY are packed for
# bench/examples.sh, too, whose reader is plain.
set -euo pipefail
cd "$(dirname "$0")/.."
matrices=${1:-}
[ -z "$matrices" ] || matrices=$(realpath "$matrices")
limit=$(( ${2:-49} * 1024 * 1024 ))
build=${BUILD:-$PWD/build}/gpu
out=.gpu
programs="bench_warm_start bench_update bench_api_check bench_soak"
mkdir -p "$(dirname "$build")"

# The tool and libcbgen find their libraries in the folder lib beside them. DT_RPATH, unlike DT_RUNPATH, also counts
# for the libraries that libraries need.
cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DCBGEN_TESTS=OFF '-DCMAKE_BUILD_RPATH=$ORIGIN/lib' \
  -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags -DCMAKE_SHARED_LINKER_FLAGS=-Wl,--disable-new-dtags \
  >"$build.log" 2>&1 &&
  cmake --build "$build" -j "$(nproc)" --target cbgen_tool cbgen $programs >>"$build.log" 2>&1 ||
  { tail -40 "$build.log" >&2; exit 1; }

rm -rf "$out"
mkdir -p "$out/lib" "$out/matrices"
install -s -m 755 "$build/cbgen" "$out/cbgen"
for name in $programs; do install -s -m 755 "$build/bench/$name" "$out/$name"; done
install -s -m 755 "$build/libcbgen.so.0" "$out/libcbgen.so.0"
ldd "$build/cbgen" "$build/libcbgen.so.0" | awk '$2 == "=>" { print $3 }' |
  grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so' | while read -r library; do
  cp -L "$library" "$out/lib/$(basename "$library")"
done
chmod -R u+w "$out/lib"
# one file of ICU is 30 MiB of tables: packed, all of them take a fifth
tar -C "$out" -cf - lib | xz -9 -T0 >"$out/lib.tar.xz"
rm -rf "$out/lib"

for name in G2_circuit wang4 soc-Epinions1_und; do
  [ -n "$matrices" ] && [ -e "$matrices/$name.mtx.zst" ] || continue
  mkdir -p "$out/examples-matrices"
  zstd -qdc "$matrices/$name.mtx.zst" | gzip -9 >"$out/examples-matrices/$name.mtx.gz"
done

used=$(du -sb "$out" | cut -f1)
if [ -n "$matrices" ]; then
  ls -S "$matrices" | grep -E '\.(mtx|npz)(\.(gz|zst|xz|bz2))?$' >"$out/candidates" || true
  while read -r name; do
    [ ! -e "tests/data/corpus/$name" ] || continue
    size=$(stat -c %s "$matrices/$name")
    if [ $((used + size)) -gt "$limit" ]; then echo "left out, no room: $name"; continue; fi
    cp "$matrices/$name" "$out/matrices/$name"
    chmod u+w "$out/matrices/$name"
    used=$((used + size))
  done <"$out/candidates"
  rm -f "$out/candidates"
fi
echo "$out: $((used / 1024 / 1024)) MiB, $(ls "$out/matrices" | wc -l) matrices, $(git ls-files -z | xargs -0 du -cb 2>/dev/null | tail -1 | cut -f1 | awk '{ printf "%d", $1 / 1048576 }') MiB in the source tree"
