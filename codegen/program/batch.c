// SPDX-License-Identifier: Apache-2.0
/* The text of a batch's kernel: see batch.h. */
#include "codegen/program/batch.h"

#include "base/integers.h"
#include "codegen/expand.h"
#include "codegen/source.h"

#include <stdio.h>

enum {
  THREADS = 256,
  MOST_LANES = 32,
  /* Where the matrix stays in registers: */
  MOST_SLOTS = 28,      /* of a thread: 70 registers in double precision, with which two thread blocks of 256 fit */
  LEAST_THREADS = 128,
  MOST_SHARES = 4,      /* programs ask for no more thread blocks on a multiprocessor */
  OTHERS = 48,          /* registers that a thread has beside */
  REGISTERS = 64 << 10  /* of a multiprocessor, of all architectures since sm_50 */
};
/* Columns have 16 bits, of which the last number is none. */
_Static_assert(MOST_SLOTS * (REGISTERS / OTHERS) < 0xffff, "there are no more rows than that where a matrix is kept");

/* How rows are dealt out. */
struct shape {
  int threads, lanes; /* of a row */
  int each;           /* rows of a thread, which keeps them in registers; 0: it does not */
  int slots, shares;  /* then: of a thread; thread blocks that share a multiprocessor */
};

/* A power of two, not above what a row has in the mean. */
static int lanes_of(const struct cb_batch_request *request) {
  int lanes = 1;
  while (lanes < MOST_LANES && 2 * lanes * request->rows <= request->nnz) lanes *= 2;
  return lanes;
}

/* Registers of a thread that has so many slots: values, and half a word for each column. */
static int64_t registers_of(const struct cb_batch_request *request, int64_t slots) {
  const int64_t values = slots * (int64_t)cb_type_size(request->type) / 4;
  return cb_round_up(values + cb_divide_up(slots, (int64_t)2) + OTHERS, (int64_t)8);
}

/* Few threads with several rows each have fewer sums to exchange; but no more rows than they have registers for, and no
 * matrix of which most slots would be empty. */
static int try_held(struct shape *shape, const struct cb_batch_request *request) {
  const int64_t longest = cb_larger(request->longest, (int64_t)1);
  if (longest > MOST_SLOTS || request->rows * longest > 2 * request->nnz) return 0;
  int64_t threads = cb_larger(cb_divide_up(request->rows, MOST_SLOTS / longest), (int64_t)LEAST_THREADS);
  const int64_t each = cb_divide_up(request->rows, threads), slots = each * longest;
  threads = cb_round_up(cb_divide_up(request->rows, each), (int64_t)32);
  const int64_t shares = cb_smaller(REGISTERS / (threads * registers_of(request, slots)), (int64_t)MOST_SHARES);
  if (!shares) return 0;
  *shape = (struct shape){(int)threads, 1, (int)each, (int)slots, (int)shares};
  return 1;
}

static struct shape shape_of(const struct cb_batch_request *request) {
  struct shape shape = {.threads = THREADS};
  if (!try_held(&shape, request)) shape.lanes = lanes_of(request);
  return shape;
}

int cb_batch_shares(const struct cb_batch_request *request) { return shape_of(request).shares; }

static enum cb_status product_text(struct cb_text *text, const struct cb_batch_request *request,
                                   const struct shape *shape, struct cb_diag *diag) {
  const struct {
    const char *name;
    int64_t number;
    int is_used;
  } numbers[] = {{"rows", request->rows, 1},
                 {"threads", shape->threads, 1},
                 {"lanes", shape->lanes, !shape->each},
                 {"longest", cb_larger(request->longest, (int64_t)1), shape->each},
                 {"each", shape->each, shape->each},
                 {"slots", shape->slots, shape->each}};
  char texts[sizeof numbers / sizeof *numbers][24];
  struct cb_text body = {0};
  struct cb_scope scope = {0};
  cb_scope_placeholder(&scope, "vector_type", cb_type_entry_name(request->type));
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    snprintf(texts[i], sizeof texts[i], "%lld", (long long)numbers[i].number);
    if (numbers[i].is_used) cb_scope_placeholder(&scope, numbers[i].name, texts[i]);
  }
  if (shape->each) cb_scope_section(&scope, "held");
  else if (shape->lanes > 1) cb_scope_section(&scope, "several");
  enum cb_status s = cb_expand(&body, "batch", &scope, diag);
  if (!s) s = cb_source_with_prelude(text, &body, diag);
  cb_text_release(&body);
  return s;
}

enum cb_status cb_batch_text(struct cb_text *text, const struct cb_batch_request *request,
                             struct cb_program_shape *shape, struct cb_diag *diag) {
  const struct shape rows = shape_of(request);
  struct cb_text product = {0};
  if (request->nnz >= INT32_MAX || request->rows * rows.lanes >= INT32_MAX - THREADS)
    return cb_fail(diag, CB_ERR_LIMIT, "a batch's systems have fewer than 2^31 nonzeros and rows");
  enum cb_status s = product_text(&product, request, &rows, diag);
  const struct cb_program_launch launch = {
      "product", rows.each ? 1 : cb_divide_up(request->rows * rows.lanes, (int64_t)THREADS), rows.threads, 0};
  const struct cb_program_request whole = {.program = request->program,
                                           .form = {.kind = CB_PROGRAM_BATCH,
                                                    .blocks = 1,
                                                    .each = rows.shares,
                                                    .in_steps = rows.each > 0, /* one entry to gather, not two */
                                                    .resident = request->resident,
                                                    .room = request->room},
                                           .source = cb_text_string(&product),
                                           .launches = &launch,
                                           .launches_count = 1,
                                           .rows = request->rows,
                                           .nnz = request->nnz,
                                           .vector = request->type,
                                           .sum = request->type};
  if (!s) s = cb_program_text(text, &whole, shape, diag);
  cb_text_release(&product);
  return s;
}
