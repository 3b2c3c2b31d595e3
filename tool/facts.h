// SPDX-License-Identifier: Apache-2.0
/* What a kernel's text says of itself, as a list of named facts, and two such lists compared. It is read from the text,
 * not from a plan, since the text is what a matrix, a kernel.cu and an entry of the cache all have. */
#ifndef CBGEN_TOOL_FACTS_H
#define CBGEN_TOOL_FACTS_H

#include "base/json.h"
#include "base/status.h"
#include "base/text.h"

#include <stddef.h>

/* In the order in which differences are told. */
enum cb_fact_group {
  CB_FACTS_KEY,       /* fields of a cache key */
  CB_FACTS_KERNEL,    /* of the head: product, matrix, size, type, version, target, launches */
  CB_FACTS_PLAN,      /* leaves of the plan's tree, named by their path: "split/sell/lanes" */
  CB_FACTS_CONSTANTS, /* "sell0/kLanes" */
  CB_FACTS_ARRAYS,    /* "sell0/first_step": type, count, bytes, storage */
  CB_FACTS_BYTES,     /* stored in all */
  CB_FACTS_REGISTERS, /* of a GPU: registers, spills, shared memory, code */
  CB_FACT_GROUPS
};

struct cb_known {
  enum cb_fact_group group;
  char *name, *value;
};

/* Zero-initialise it. */
struct cb_facts {
  int count, room, failed; /* memory was short: all further calls do nothing */
  struct cb_known *list;
};

void cb_facts_add(struct cb_facts *facts, enum cb_fact_group group, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* CB_ERR_FORMAT: `text` is no kernel of cbgen. `subject` is for the message. */
enum cb_status cb_facts_read(struct cb_facts *facts, const char *text, const char *subject, struct cb_diag *diag);
/* Bytes of the text in front of its host part, which NVRTC does not see and which may carry data. */
size_t cb_device_length(const char *text);
void cb_facts_release(struct cb_facts *facts);

/* Appends what differs, group by group, as trees. Returns how many facts differ. */
int cb_facts_compare(struct cb_text *text, const struct cb_facts *a, const struct cb_facts *b);
/* The same as members of an object, one for each group: lists of {name, a, b}, null where one lacks the fact. */
void cb_facts_compare_json(struct cb_json object, const struct cb_facts *a, const struct cb_facts *b);

#endif
