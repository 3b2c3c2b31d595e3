// SPDX-License-Identifier: Apache-2.0
/* A ring of binaries, and the one of this process: see families.h. */
#include "runtime/api/families.h"

#include "base/memory.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static unsigned char *copy_of(const unsigned char *bytes, size_t count) {
  unsigned char *copy = cb_alloc(count + 1, 1);
  if (copy) memcpy(copy, bytes, count);
  return copy;
}

static struct cb_family_binary *at(const struct cb_families *families, int number) {
  return &families->ring[(families->first + number) % CB_MOST_FAMILIES];
}

int cb_families_get(const struct cb_families *families, struct cb_hash key, struct cb_compiled *compiled) {
  for (int i = 0; i < families->count; i++) {
    const struct cb_family_binary *known = at(families, i);
    if (memcmp(&known->key, &key, sizeof key)) continue;
    *compiled = (struct cb_compiled){.cubin = copy_of(known->cubin, known->cubin_bytes),
                                     .cubin_bytes = known->cubin_bytes,
                                     .spilled_bytes = known->spilled_bytes};
    return compiled->cubin != NULL;
  }
  return 0;
}

static void drop_oldest(struct cb_families *families) {
  struct cb_family_binary *oldest = at(families, 0);
  families->bytes -= oldest->cubin_bytes;
  cb_free(oldest->cubin);
  families->first = (families->first + 1) % CB_MOST_FAMILIES;
  families->count--;
}

void cb_families_add(struct cb_families *families, struct cb_hash key, const struct cb_compiled *compiled) {
  if (!families->ring) families->ring = cb_calloc(CB_MOST_FAMILIES, sizeof *families->ring);
  if (!families->ring || compiled->cubin_bytes > CB_MOST_FAMILY_BYTES) return;
  unsigned char *copy = copy_of(compiled->cubin, compiled->cubin_bytes);
  if (!copy) return;
  while (families->count == CB_MOST_FAMILIES || families->bytes + compiled->cubin_bytes > CB_MOST_FAMILY_BYTES)
    drop_oldest(families);
  *at(families, families->count++) =
      (struct cb_family_binary){key, copy, compiled->cubin_bytes, compiled->spilled_bytes};
  families->bytes += compiled->cubin_bytes;
}

void cb_families_release(struct cb_families *families) {
  while (families->count) drop_oldest(families);
  cb_free(families->ring);
  *families = (struct cb_families){0};
}

/* ---- of this process */

static struct {
  pthread_mutex_t lock;
  int holders;
  struct cb_families families;
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct cb_hash key_of(struct cb_hash outline, const char *arch) {
  struct {
    struct cb_hash outline;
    char arch[16];
  } parts = {.outline = outline};
  snprintf(parts.arch, sizeof parts.arch, "%s", arch);
  return cb_hash_bytes(&parts, sizeof parts);
}

void cb_families_hold(void) {
  pthread_mutex_lock(&known.lock);
  known.holders++;
  pthread_mutex_unlock(&known.lock);
}

void cb_families_let_go(void) {
  pthread_mutex_lock(&known.lock);
  if (!--known.holders) cb_families_release(&known.families);
  pthread_mutex_unlock(&known.lock);
}

int cb_families_find(struct cb_hash outline, const char *arch, struct cb_compiled *compiled) {
  const struct cb_hash key = key_of(outline, arch);
  pthread_mutex_lock(&known.lock);
  const int found = cb_families_get(&known.families, key, compiled);
  pthread_mutex_unlock(&known.lock);
  return found;
}

/* Another thread may have been faster. */
void cb_families_keep(struct cb_hash outline, const char *arch, const struct cb_compiled *compiled) {
  const struct cb_hash key = key_of(outline, arch);
  struct cb_compiled other = {0};
  pthread_mutex_lock(&known.lock);
  if (!cb_families_get(&known.families, key, &other)) cb_families_add(&known.families, key, compiled);
  pthread_mutex_unlock(&known.lock);
  cb_compiled_release(&other);
}
