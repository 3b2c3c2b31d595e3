// SPDX-License-Identifier: Apache-2.0
/* Ends of stretches: see stretches.h. */
#include "analysis/stretches.h"

#include "base/memory.h"

/* Where columns are remote: each end is a stretch of one. */
static int fetch(struct cb_ends *ends, const struct cb_remote_columns *remote, const struct cb_stretch *stretches,
                 int64_t count) {
  struct cb_stretch *single = cb_alloc((size_t)(2 * count), sizeof *single);
  int32_t *columns = cb_alloc((size_t)(2 * count), sizeof *columns);
  for (int64_t i = 0; single && i < count; i++) {
    single[2 * i] = (struct cb_stretch){stretches[i].begin, 1};
    single[2 * i + 1] = (struct cb_stretch){stretches[i].begin + stretches[i].length - 1, 1};
  }
  const int good = single && columns && !remote->fetch(remote->user, single, 2 * count, columns, NULL);
  for (int64_t i = 0; good && i < count; i++) ends[i] = (struct cb_ends){columns[2 * i], columns[2 * i + 1]};
  cb_free(single);
  cb_free(columns);
  return good;
}

struct cb_ends *cb_row_spans(const struct cb_csr *csr, int64_t each, int64_t count) {
  const struct cb_remote_columns *remote = csr->remote;
  struct cb_ends *spans = remote && remote->row_spans && !remote->first ? cb_alloc((size_t)count, sizeof *spans) : NULL;
  if (!spans || !remote->row_spans(remote->user, each, count, spans, NULL)) return spans;
  cb_free(spans);
  return NULL;
}

int cb_stretch_ends(struct cb_ends *ends, const struct cb_csr *csr, const struct cb_stretch *stretches, int64_t count) {
  if (csr->remote) return !count || fetch(ends, csr->remote, stretches, count);
  for (int64_t i = 0; i < count; i++)
    ends[i] = (struct cb_ends){csr->col_idx[stretches[i].begin],
                               csr->col_idx[stretches[i].begin + stretches[i].length - 1]};
  return 1;
}
