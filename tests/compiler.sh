#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A C++ compiler for tests that keeps the emulator: some two hundred processes compile the same two files of
# runtime/verify/emulation/, two thirds of a second each. scripts/test puts a folder of links to this file, named as
# compilers are (c++, g++, clang++), first in PATH. Kept objects lie in that folder, by the sum of all that they are
# made from. What else is compiled goes to the next compiler of that name in PATH.
folder=$(dirname "$0")
name=${0##*/}
case ":$PATH:" in
*":$folder:"*) PATH=$(others=":$PATH:"; echo "${others%%":$folder:"*}:${others#*":$folder:"}") ;;
esac
real=$(command -v "$name") && [ "$real" != "$0" ] || { echo "no other $name in PATH" >&2; exit 127; }
case " $* " in
*" -c emulator.cpp driver.cpp "*) objects="emulator.o driver.o" ;;
*" probe.cpp -o probe "*) objects=probe ;;
*) exec "$real" "$@" ;;
esac
kept=$folder/kept-$name-$({ echo "$*"; stat -L -c '%n %s %Y' "$real"; cat -- *.cpp *.h; } | sha256sum | cut -c1-32)
if [ ! -d "$kept" ]; then
  "$real" "$@" || exit
  new=$(mktemp -d "$folder/new-XXXXXX") && cp -- $objects "$new" && mv -T "$new" "$kept" 2>/dev/null || rm -rf "$new"
  exit 0
fi
for object in $objects; do cp -- "$kept/$object" "$object" || exit; done
