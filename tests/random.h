// SPDX-License-Identifier: Apache-2.0
/* Repeatable numbers and bytes for tests. */
#ifndef CBGEN_TESTS_RANDOM_H
#define CBGEN_TESTS_RANDOM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

/* A 64-bit generator (splitmix64). */
static inline uint64_t draw(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* `count` bytes, on the heap. */
static inline unsigned char *random_bytes(size_t count, uint64_t seed) {
  unsigned char *bytes = malloc(count + 8);
  assert_non_null(bytes);
  for (size_t i = 0; i < count; i += 8) {
    const uint64_t word = draw(&seed);
    memcpy(bytes + i, &word, 8);
  }
  return bytes;
}

#endif
