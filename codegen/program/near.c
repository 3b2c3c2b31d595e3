// SPDX-License-Identifier: Apache-2.0
/* A matrix in the shared memory of a grid's thread blocks: see near.h. */
#include "codegen/program/near.h"

#include "base/integers.h"

#include <string.h>

enum {
  NOTES = 4 << 10, /* bytes for what is noted */
  SPARE = 4 << 10  /* bytes; and a sixteenth of an equal part: parts differ */
};

enum cb_status cb_near_plan(int64_t *bytes, const struct cb_product_text *product,
                            const struct cb_program_request *request, int64_t room, struct cb_diag *diag) {
  const int64_t blocks = request->launches[0].blocks;
  const int64_t most = request->form.blocks ? request->form.blocks : request->form.multiprocessors;
  if (!product->commits_once || request->has_carry || request->launches_count > 1 || product->shares ||
      request->launches[0].dynamic_shared || cb_program_has_heads(request->program))
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "the matrix cannot lie in shared memory with this product: choose another recipe, or a program form "
                   "without '+matrix'");
  const int64_t share = cb_divide_up(blocks, cb_larger(most, (int64_t)1));
  const int64_t part = NOTES + request->stored_bytes / blocks * share;
  if (part > room)
    return cb_fail(diag, CB_ERR_LIMIT,
                   "the matrix takes %lld bytes of each multiprocessor's shared memory, and there are %lld: choose a program "
                   "form without '+matrix'", (long long)part, (long long)cb_larger(room, (int64_t)0));
  *bytes = cb_round_up(cb_smaller(room - 15, part + part / 16 + SPARE), 16);
  return CB_OK;
}

/* A part of "const TYPE NAME, …": the next parameter. 0: there is none. */
struct parameter {
  const char *type, *name;
  int type_length, name_length;
};

static int take_parameter(const char **list, struct parameter *parameter) {
  static const char before[] = "const ";
  const char *at = *list, *end = strstr(at, ", ");
  if (strncmp(at, before, sizeof before - 1) != 0 || !end) return 0;
  at += sizeof before - 1;
  const char *blank = memchr(at, ' ', (size_t)(end - at));
  if (!blank) return 0;
  *parameter = (struct parameter){at, blank + 1, (int)(blank - at), (int)(end - blank - 1)};
  *list = end + 2;
  return 1;
}

void cb_near_lines(struct cb_text *notes, struct cb_text *copies, const struct cb_product_text *product) {
  struct parameter at;
  for (const char *list = cb_text_string(&product->parameters); take_parameter(&list, &at);) {
    cb_text_add(notes, "  note_arrays(%.*s, arrays);\n", at.name_length, at.name);
    cb_text_add(copies, "  const %.*s near_%.*s = take_near(%.*s, arrays, near_at);\n", at.type_length, at.type,
                at.name_length, at.name, at.name_length, at.name);
  }
}

void cb_near_arguments(struct cb_text *text, const struct cb_product_text *product, int watched) {
  struct parameter at;
  for (const char *list = cb_text_string(&product->parameters); take_parameter(&list, &at);)
    if (watched) cb_text_add(text, "watched::%.*s{%.*s}, ", at.type_length, at.type, at.name_length, at.name);
    else cb_text_add(text, "near_%.*s, ", at.name_length, at.name);
}

int cb_near_count(const struct cb_product_text *product) {
  static const char arrays[] = "struct Arrays {\n";
  int count = 0;
  for (const char *at = cb_text_string(&product->regions); (at = strstr(at, arrays));) {
    at += sizeof arrays - 1;
    for (const char *end = strstr(at, "};\n"); end && at < end; at = strchr(at, '\n') + 1) count++;
  }
  return count;
}
