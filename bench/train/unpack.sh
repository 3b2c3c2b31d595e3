# SPDX-License-Identifier: Apache-2.0
# For scripts that measure with what bench/pack_gpu.sh put into .gpu/: unpacks its libraries, of which those that the machine has go
# first where they are the compiler's own. Sourced in the source directory.
[ -d .gpu/lib ] || tar -C .gpu -xJf .gpu/lib.tar.xz || { echo "unpacking .gpu failed: run bench/pack_gpu.sh first" >&2; exit 1; }
for name in libstdc++.so.6 libgcc_s.so.1 libgomp.so.1; do
  ldconfig -p | grep -q "$name" && rm -f ".gpu/lib/$name"
done
