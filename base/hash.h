// SPDX-License-Identifier: Apache-2.0
/* 128-bit hashes (XXH3) over tagged fields, so that no two different sequences of fields run together. */
#ifndef CBGEN_BASE_HASH_H
#define CBGEN_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct cb_hash {
  uint64_t high, low;
};

enum { CB_HASH_HEX = 33 }; /* 32 digits and a NUL */

struct cb_hash cb_hash_bytes(const void *bytes, size_t length);

/* Hash of a long array: of the digests of its chunks of CB_HASH_CHUNK elements, computed in parallel. The result does
 * not depend on the number of threads. */
enum { CB_HASH_CHUNK = 1 << 16 };
struct cb_hash cb_hash_array(const void *elements, size_t count, size_t size);

/* The same for an array that does not lie in memory as it is hashed: `fill` writes elements first … first + count - 1,
 * of `size` bytes (at most 8) each, to `to`. It is called for at most 1024 elements at a time, from several threads
 * at once. */
typedef void cb_hash_fill(void *user, size_t first, size_t count, void *to);
struct cb_hash cb_hash_array_by(cb_hash_fill *fill, void *user, size_t count, size_t size);

/* The same from the digests (cb_hash_bytes) of all chunks, of which the last may be short. */
struct cb_hash cb_hash_digests(const struct cb_hash *digests, size_t count);

/* Folds one named field into `hash`: the tag, the length and the bytes all count. */
void cb_hash_field(struct cb_hash *hash, const char *tag, const void *bytes, size_t length);
void cb_hash_number(struct cb_hash *hash, const char *tag, uint64_t number);

/* XXH64 of a block of which the eight bytes at `own`, where the result will stand, count as zero. */
uint64_t cb_hash_sealed(const void *bytes, size_t length, size_t own);

/* 32 lower-case hexadecimal digits, most significant first. */
void cb_hash_hex(struct cb_hash hash, char text[CB_HASH_HEX]);

#endif
