// SPDX-License-Identifier: Apache-2.0
/* Tagged 128-bit hashes: see hash.h. */
#include "base/hash.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>
#define XXH_STATIC_LINKING_ONLY /* a state on the stack */
#include <xxhash.h>

enum { BATCH = 1024 }; /* digests kept at a time: bounded memory, no allocation that could fail */

struct cb_hash cb_hash_bytes(const void *bytes, size_t length) {
  const XXH128_hash_t hash = XXH3_128bits(bytes, length);
  return (struct cb_hash){hash.high64, hash.low64};
}

/* Elements first … first + count - 1 by chunks; the same digest as of their bytes in a row. */
static struct cb_hash digest_by(cb_hash_fill *fill, void *user, size_t first, size_t count, size_t size) {
  enum { CHUNK = 1024 };
  uint64_t chunk[CHUNK];
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (size_t at = 0; at < count; at += CHUNK) {
    const size_t length = count - at < CHUNK ? count - at : CHUNK;
    fill(user, first + at, length, chunk);
    XXH3_128bits_update(&state, chunk, length * size);
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return (struct cb_hash){hash.high64, hash.low64};
}

/* `elements` NULL: `fill` knows them. */
static struct cb_hash hash_chunks(const void *elements, cb_hash_fill *fill, void *user, size_t count, size_t size) {
  struct cb_hash hash = {0, 0};
  const size_t chunks = (count + CB_HASH_CHUNK - 1) / CB_HASH_CHUNK;
  struct cb_hash digests[BATCH];
  cb_hash_number(&hash, "elements", count);
  for (size_t first = 0; first < chunks; first += BATCH) {
    const size_t batch = chunks - first < BATCH ? chunks - first : BATCH;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < batch; i++) {
      const size_t begin = (first + i) * CB_HASH_CHUNK;
      const size_t length = count - begin < CB_HASH_CHUNK ? count - begin : CB_HASH_CHUNK;
      digests[i] = fill ? digest_by(fill, user, begin, length, size)
                        : cb_hash_bytes((const char *)elements + begin * size, length * size);
    }
    cb_hash_field(&hash, "digests", digests, batch * sizeof *digests);
  }
  return hash;
}

struct cb_hash cb_hash_array(const void *elements, size_t count, size_t size) {
  return hash_chunks(elements, NULL, NULL, count, size);
}

struct cb_hash cb_hash_array_by(cb_hash_fill *fill, void *user, size_t count, size_t size) {
  return hash_chunks(NULL, fill, user, count, size);
}

struct cb_hash cb_hash_digests(const struct cb_hash *digests, size_t count) {
  struct cb_hash hash = {0, 0};
  cb_hash_number(&hash, "elements", count);
  const size_t chunks = (count + CB_HASH_CHUNK - 1) / CB_HASH_CHUNK;
  for (size_t first = 0; first < chunks; first += BATCH) {
    const size_t batch = chunks - first < BATCH ? chunks - first : BATCH;
    cb_hash_field(&hash, "digests", digests + first, batch * sizeof *digests);
  }
  return hash;
}

void cb_hash_field(struct cb_hash *hash, const char *tag, const void *bytes, size_t length) {
  struct {
    struct cb_hash before, tag, content;
    uint64_t length;
  } field;
  memset(&field, 0, sizeof field);
  field.before = *hash;
  field.tag = cb_hash_bytes(tag, strlen(tag));
  field.content = cb_hash_bytes(bytes, length);
  field.length = length;
  *hash = cb_hash_bytes(&field, sizeof field);
}

void cb_hash_number(struct cb_hash *hash, const char *tag, uint64_t number) {
  cb_hash_field(hash, tag, &number, sizeof number);
}

uint64_t cb_hash_sealed(const void *bytes, size_t length, size_t own) {
  const uint64_t zero = 0;
  const size_t behind = own + sizeof zero;
  XXH64_state_t state;
  XXH64_reset(&state, 0);
  XXH64_update(&state, bytes, own);
  XXH64_update(&state, &zero, sizeof zero);
  XXH64_update(&state, (const char *)bytes + behind, length - behind);
  return XXH64_digest(&state);
}

void cb_hash_hex(struct cb_hash hash, char text[CB_HASH_HEX]) {
  snprintf(text, CB_HASH_HEX, "%016llx%016llx", (unsigned long long)hash.high, (unsigned long long)hash.low);
}
