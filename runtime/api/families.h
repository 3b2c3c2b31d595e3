// SPDX-License-Identifier: Apache-2.0
/* Binaries of families that contexts of this process have met, whether they came with the library, from the cache or
 * from NVRTC: the next matrix of the family takes a copy. They are found by the hash of a plan's outline, and known for
 * as long as some session is there that holds them: a context's, or one that is kept in a CUDA context (session.h). */
#ifndef CBGEN_RUNTIME_API_FAMILIES_H
#define CBGEN_RUNTIME_API_FAMILIES_H

#include "base/hash.h"
#include "runtime/cuda/nvrtc.h"

enum { CB_MOST_FAMILIES = 1024, CB_MOST_FAMILY_BYTES = 32 << 20 };

struct cb_family_binary {
  struct cb_hash key;
  unsigned char *cubin;
  size_t cubin_bytes;
  int spilled_bytes;
};

/* Zeros: none are known. One thread at a time. The oldest go when there are too many, or too many bytes. */
struct cb_families {
  struct cb_family_binary *ring; /* CB_MOST_FAMILIES; NULL until there is one */
  int first, count;
  size_t bytes;
};

/* Whether the family is known and there was memory for a copy of its binary, which is the caller's
 * (cb_compiled_release). */
int cb_families_get(const struct cb_families *families, struct cb_hash key, struct cb_compiled *compiled);

/* Keeps a copy of a family's binary that cb_families_get did not find. A want of memory costs time only. */
void cb_families_add(struct cb_families *families, struct cb_hash key, const struct cb_compiled *compiled);

/* Forgets all of them. */
void cb_families_release(struct cb_families *families);

/* ---- those of this process, for all sessions. Any thread */

void cb_families_hold(void);
void cb_families_let_go(void); /* the last one forgets them */

/* As cb_families_get and _add, for an outline (codegen/outline.h) on an architecture. Only while they are held. */
int cb_families_find(struct cb_hash outline, const char *arch, struct cb_compiled *compiled);
void cb_families_keep(struct cb_hash outline, const char *arch, const struct cb_compiled *compiled);

#endif
