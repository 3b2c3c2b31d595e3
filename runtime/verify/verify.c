// SPDX-License-Identifier: Apache-2.0
/* Verification: see verify.h. A product is a row of the table below; for every case and every product of its
 * form a trial is prepared (vectors, data), run on the host, and judged. */
#include "runtime/verify/verify.h"

#include "analysis/plan/symmetry.h"
#include "analysis/plan/locate.h"
#include "base/available.h"
#include "base/memory.h"
#include "base/real.h"
#include "codegen/checked.h"
#include "runtime/verify/oracle.h"
#include "runtime/verify/trace.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- kinds of products */

enum x_kind { X_RANDOM, X_INTEGERS, X_NON_FINITE, X_ENDS };
/* Which semirings have it: others than plus-times have α 1 alone, and β 0 and 1. */
enum kind_of { OF_PLUS_TIMES = 1, OF_OTHERS = 2, OF_ALL = OF_PLUS_TIMES | OF_OTHERS };
enum y_kind { Y_MARKED, Y_RANDOM, Y_INTEGERS }; /* what y holds before */

struct kind {
  const char *name;
  enum cb_form form;
  int integer_values;
  enum x_kind x;
  enum y_kind y;
  double alpha, beta;
  enum kind_of of;
  double alpha_imag, beta_imag; /* for complex numbers, which have the others as well */
};

/* α and β are exact in every type. For ax and add they are what the form means. */
static const struct kind kinds[] = {
    {"random", CB_FORM_AX, 0, X_RANDOM, Y_MARKED, 1, 0, OF_ALL, 0, 0},
    {"integers", CB_FORM_AX, 1, X_INTEGERS, Y_MARKED, 1, 0, OF_ALL, 0, 0},
    {"non-finite", CB_FORM_AX, 0, X_NON_FINITE, Y_MARKED, 1, 0, OF_ALL, 0, 0},
    {"non-finite ends", CB_FORM_AX, 0, X_ENDS, Y_MARKED, 1, 0, OF_ALL, 0, 0},
    {"random", CB_FORM_ADD, 0, X_RANDOM, Y_RANDOM, 1, 1, OF_ALL, 0, 0},
    {"integers", CB_FORM_ADD, 1, X_INTEGERS, Y_INTEGERS, 1, 1, OF_ALL, 0, 0},
    {"non-finite", CB_FORM_ADD, 0, X_NON_FINITE, Y_RANDOM, 1, 1, OF_ALL, 0, 0},
    {"non-finite ends", CB_FORM_ADD, 0, X_ENDS, Y_RANDOM, 1, 1, OF_ALL, 0, 0},
    {"random", CB_FORM_AXPBY, 0, X_RANDOM, Y_RANDOM, -1.625, 0.71875, OF_PLUS_TIMES, 0, 0},
    {"integers", CB_FORM_AXPBY, 1, X_INTEGERS, Y_INTEGERS, 3, -2, OF_PLUS_TIMES, 0, 0},
    {"non-finite", CB_FORM_AXPBY, 0, X_NON_FINITE, Y_RANDOM, 0.5, -1, OF_PLUS_TIMES, 0, 0},
    {"non-finite ends", CB_FORM_AXPBY, 0, X_ENDS, Y_RANDOM, 0.5, -1, OF_PLUS_TIMES, 0, 0},
    {"beta zero", CB_FORM_AXPBY, 0, X_RANDOM, Y_MARKED, 1.25, 0, OF_PLUS_TIMES, 0, 0},
    {"alpha zero", CB_FORM_AXPBY, 0, X_RANDOM, Y_RANDOM, 0, -0.375, OF_PLUS_TIMES, 0, 0},
    {"random, complex", CB_FORM_AXPBY, 0, X_RANDOM, Y_RANDOM, -1.625, 0.71875, OF_PLUS_TIMES, 0.25, -1.5},
    {"integers, complex", CB_FORM_AXPBY, 1, X_INTEGERS, Y_INTEGERS, 3, -2, OF_PLUS_TIMES, -1, 2},
    {"non-finite, complex", CB_FORM_AXPBY, 0, X_NON_FINITE, Y_RANDOM, 0, 0, OF_PLUS_TIMES, 1, 1},
    {"random", CB_FORM_AXPBY, 0, X_RANDOM, Y_RANDOM, 1, 1, OF_OTHERS, 0, 0},
    {"integers", CB_FORM_AXPBY, 1, X_INTEGERS, Y_INTEGERS, 1, 1, OF_OTHERS, 0, 0},
    {"non-finite", CB_FORM_AXPBY, 0, X_NON_FINITE, Y_RANDOM, 1, 1, OF_OTHERS, 0, 0},
    {"non-finite ends", CB_FORM_AXPBY, 0, X_ENDS, Y_MARKED, 1, 0, OF_OTHERS, 0, 0},
    {"beta zero", CB_FORM_AXPBY, 0, X_RANDOM, Y_MARKED, 1, 0, OF_OTHERS, 0, 0},
};

static int concerns(const struct kind *kind, const struct cb_plan *plan) {
  if ((kind->alpha_imag != 0 || kind->beta_imag != 0) && !cb_plan_is_complex(plan)) return 0;
  return kind->form == plan->form && kind->of & (plan->semiring == CB_PLUS_TIMES ? OF_PLUS_TIMES : OF_OTHERS);
}

/* How many vectors a product has, and where they lie: an option's `vectors` and `more`, or one less, and as many
 * elements between rows, or columns, as there must be and `gap`. */
static const struct way {
  const char *name;
  int several, by_row, more, gap;
  int once;  /* with the first kind of products only */
  int heads; /* one vector, with heads of split values */
} ways[] = {
    {"one vector", 0, 0, 0, 0, 0, 0},
    {"heads", 0, 0, 0, 0, 0, 1},
    {"rows", 1, 1, 0, 0, 0, 0},
    {"columns", 1, 0, 3, 2, 0, 0},
    {"rows, many", 1, 1, 2, 16, 1, 0}, /* more than one launch takes, and gaps that keep rows aligned */
    {"rows, odd", 1, 1, -1, 1, 1, 0},
};
enum { WAYS = sizeof ways / sizeof *ways };

/* Kernels for several vectors have them all, with some kinds of products. */
static int goes(const struct way *way, const struct kind *kind, const struct cb_plan *plan) {
  if (way->heads) return cb_plan_has_heads(plan) && plan->rows;
  if (plan->vectors == 1 || !plan->rows) return !way->several;
  return (way->several && !way->once) || kind == &kinds[0] || !strcmp(kind->name, "random");
}

/* One product of one case. The vectors are of the plan's vector type; what fills them sees real numbers, of complex
 * entries two each. */
struct trial {
  const struct cb_verify_case *one;
  const struct kind *kind;
  const struct way *way;
  struct cb_host_columns columns; /* count 0: one vector */
  int64_t x_length, y_length;     /* elements, those between vectors included */
  int number; /* of the case */
  struct cb_host *traces; /* its first wrong row, on this host; NULL: it is not to be traced */
  void *x, *y, *result;
};

/* Whether the trial's matrix has integer values instead of its own: fixed ones stay. */
static int has_other_values(const struct trial *trial) {
  return trial->kind->integer_values && !cb_plan_values_fixed(trial->one->plan);
}

struct integer_data { /* a case's matrix with integer values, packed */
  double *values;
  struct cb_blob blob;
};

/* ---- seeded numbers */

static uint64_t draw(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static double draw_fraction(uint64_t *state) {
  return (double)(draw(state) >> 11) * 0x1p-52 - 1;
} /* [−1, 1) */

/* Small enough that even floats sum 262144 products exactly. */
static double draw_integer(uint64_t *state) {
  return (double)(draw(state) % 17) - 8;
}

/* A NaN that no arithmetic gives. */
static const void *mark_of(enum cb_type type) {
  static const uint64_t wide = 0x7ff80bad0bad0bad;
  static const uint32_t single = 0x7fc0bad0;
  static const uint16_t half = 0x7fed;
  return type == CB_F64 ? (const void *)&wide : type == CB_F32 ? (const void *)&single : &half;
}

static void fill_marks(void *y, enum cb_type of_entry, int64_t entries) {
  const enum cb_type type = cb_type_of_part(of_entry);
  const int64_t count = cb_type_parts(of_entry) * entries;
  const size_t size = cb_type_size(type);
  for (int64_t i = 0; i < count; i++) memcpy((char *)y + (size_t)i * size, mark_of(type), size);
}

/* Number i, of complex entries a part. */
static int is_mark(const void *y, enum cb_type of_entry, int64_t i) {
  const enum cb_type type = cb_type_of_part(of_entry);
  const size_t size = cb_type_size(type);
  return !memcmp((const char *)y + (size_t)i * size, mark_of(type), size);
}

static int is_marked_entry(const void *y, enum cb_type type, int64_t i) {
  const int64_t parts = cb_type_parts(type);
  return is_mark(y, type, parts * i) && is_mark(y, type, parts * i + parts - 1);
}

static void fill(void *vector, enum cb_type of_entry, int64_t entries, int integers, uint64_t seed) {
  const enum cb_type type = cb_type_of_part(of_entry);
  const int64_t count = cb_type_parts(of_entry) * entries;
  for (int64_t i = 0; i < count; i++)
    cb_real_set(vector, type, i, integers ? draw_integer(&seed) : draw_fraction(&seed));
}

/* In columns of random nonzeros: a row of average length sees one with a probability of about a third. */
static void sprinkle(void *x, enum cb_type of_entry, const struct cb_csr *csr, uint64_t seed) {
  const enum cb_type type = cb_type_of_part(of_entry);
  const int parts = cb_type_parts(of_entry);
  const double specials[] = {NAN, INFINITY, -INFINITY};
  if (!csr->nnz) return;
  const double wanted = 0.3 * (double)csr->rows * (double)csr->cols / (double)csr->nnz;
  for (int64_t left = 1 + (int64_t)fmin(wanted, (double)csr->cols / 4); left > 0; left--)
    cb_real_set(x, type, parts * (int64_t)csr->col_idx[draw(&seed) % (uint64_t)csr->nnz] + left % parts,
                specials[draw(&seed) % 3]);
}

/* Where padding that reads what it should not would most likely read. */
static void spoil_ends(void *x, enum cb_type of_entry, int64_t entries) {
  const enum cb_type type = cb_type_of_part(of_entry);
  const int64_t count = cb_type_parts(of_entry) * entries;
  if (!count) return;
  cb_real_set(x, type, count - 1, NAN);
  cb_real_set(x, type, 0, INFINITY);
}

/* Most elements become 0: or-and tells nothing else of them. */
static void thin(void *vector, enum cb_type type, int64_t count, uint64_t seed) {
  for (int64_t i = 0; i < count; i++)
    if (draw(&seed) % 4) cb_real_set(vector, type, i, 0);
}

/* ---- preparing */

void cb_verify_options_default(struct cb_verify_options *options) {
  *options = (struct cb_verify_options){.seed = 1};
  cb_host_options_default(&options->host);
}

static int orders_of(const struct cb_verify_options *options, const struct cb_csr *csr) {
  if (options->orders > 0) return options->orders;
  const int64_t size = csr->nnz + csr->rows;
  return size < 100000 ? 5 : size < 2000000 ? 2 : 1;
}

static enum cb_status prepare_integers(struct integer_data *data, const struct cb_verify_case *one,
                                       uint64_t seed, struct cb_diag *diag) {
  if (cb_plan_values_fixed(one->plan)) return CB_OK;
  const int64_t numbers = cb_csr_numbers(one->csr);
  data->values = cb_alloc((size_t)numbers, sizeof *data->values);
  data->blob = *one->blob;
  data->blob.bytes = cb_alloc((size_t)one->blob->length, 1);
  if (!data->values || !data->blob.bytes)
    return cb_fail_memory(diag, "matrix of integers", (unsigned long long)one->blob->length);
  memcpy(data->blob.bytes, one->blob->bytes, (size_t)one->blob->length);
  for (int64_t k = 0; k < numbers; k++) data->values[k] = draw_integer(&seed);
  const enum cb_symmetry_option symmetry = (enum cb_symmetry_option)one->plan->symmetry;
  if (symmetry != CB_SYMMETRIC_ON) cb_symmetry_mirror_values(data->values, one->csr, symmetry);
  const enum cb_status s = cb_pack_values(&data->blob, one->plan, one->assignment, data->values, diag);
  cb_symmetry_mirror_values(data->values, one->csr, symmetry); /* whatever was above the main diagonal */
  return s;
}

static void release_integers(struct integer_data *data) {
  cb_free(data->values);
  cb_blob_release(&data->blob);
}

/* Rows and columns of X and Y, and the elements that they take. */
static void place_vectors(struct trial *trial) {
  const struct way *way = trial->way;
  const int64_t rows = trial->one->csr->rows, cols = trial->one->csr->cols;
  const int64_t wanted = trial->one->plan->vectors + way->more, count = way->several ? wanted : 1;
  struct cb_host_columns *const at = &trial->columns;
  *at = way->by_row ? (struct cb_host_columns){count, count + way->gap, 1, count + way->gap, 1}
                    : (struct cb_host_columns){count, 1, cols + way->gap, 1, rows + way->gap};
  trial->x_length = cols ? (cols - 1) * at->x_entry + (count - 1) * at->x_vector + 1 : 0;
  trial->y_length = rows ? (rows - 1) * at->y_entry + (count - 1) * at->y_vector + 1 : 0;
  if (!way->several) at->count = 0;
}

static int64_t count_vectors(const struct trial *trial) { return trial->columns.count ? trial->columns.count : 1; }

/* A vector into its place among others, or out of it. */
static void scatter(void *all, const void *vector, size_t size, int64_t length, int64_t first, int64_t entry) {
  for (int64_t i = 0; i < length; i++)
    memcpy((char *)all + (size_t)(first + i * entry) * size, (const char *)vector + (size_t)i * size, size);
}
static void gather(void *vector, const void *all, size_t size, int64_t length, int64_t first, int64_t entry) {
  for (int64_t i = 0; i < length; i++)
    memcpy((char *)vector + (size_t)i * size, (const char *)all + (size_t)(first + i * entry) * size, size);
}

/* Vector v of X. Of several vectors every other one stays finite: what others hold must not reach it. */
static void fill_x(const struct trial *trial, void *x, int64_t v, uint64_t seed) {
  const struct cb_csr *csr = trial->one->csr;
  const enum cb_type type = trial->one->plan->vector_type;
  const int spoils = !trial->columns.count || v % 2;
  fill(x, type, csr->cols, trial->kind->x == X_INTEGERS, seed);
  if (trial->one->plan->semiring == CB_OR_AND) thin(x, type, csr->cols, seed + 3);
  if (spoils && trial->kind->x == X_NON_FINITE) sprinkle(x, type, csr, seed + 1);
  if (spoils && trial->kind->x == X_ENDS) spoil_ends(x, type, csr->cols);
}

static void fill_y(const struct trial *trial, void *y, uint64_t seed) {
  const int64_t rows = trial->one->csr->rows;
  const enum cb_type type = trial->one->plan->vector_type;
  if (trial->kind->y == Y_MARKED) {
    fill_marks(y, type, rows);
    return;
  }
  fill(y, type, rows, trial->kind->y == Y_INTEGERS, seed + 2);
  if (trial->one->plan->semiring == CB_OR_AND) thin(y, type, rows, seed + 4);
}

/* What lies between vectors is marked. */
static void fill_trial(struct trial *trial, void *x, void *y, uint64_t seed) {
  const struct cb_csr *csr = trial->one->csr;
  const enum cb_type type = trial->one->plan->vector_type;
  const size_t size = cb_type_size(type);
  const struct cb_host_columns *at = &trial->columns;
  fill_marks(trial->x, type, trial->x_length);
  fill_marks(trial->y, type, trial->y_length);
  for (int64_t v = 0; v < count_vectors(trial); v++) {
    fill_x(trial, x, v, seed + 1000 * (uint64_t)v);
    fill_y(trial, y, seed + 1000 * (uint64_t)v);
    scatter(trial->x, x, size, csr->cols, v * at->x_vector, at->x_entry);
    scatter(trial->y, y, size, csr->rows, v * at->y_vector, at->y_entry);
  }
}

static enum cb_status prepare_trial(struct trial *trial, uint64_t seed, struct cb_diag *diag) {
  const struct cb_csr *csr = trial->one->csr;
  const size_t size = cb_type_size(trial->one->plan->vector_type);
  place_vectors(trial);
  void *x = cb_alloc((size_t)csr->cols, size), *y = cb_alloc((size_t)csr->rows, size);
  trial->x = cb_alloc((size_t)trial->x_length, size);
  trial->y = cb_alloc((size_t)trial->y_length, size);
  trial->result = cb_alloc((size_t)trial->y_length, size);
  const int ready = x && y && trial->x && trial->y && trial->result;
  if (ready) fill_trial(trial, x, y, seed);
  cb_free(x);
  cb_free(y);
  return ready ? CB_OK
               : cb_fail_memory(diag, "vectors", (unsigned long long)(trial->x_length + 2 * trial->y_length) * size);
}

static void release_trial(struct trial *trial) {
  cb_free(trial->x);
  cb_free(trial->y);
  cb_free(trial->result);
}

static struct cb_host_job job_of(const struct trial *trial, const struct integer_data *integers,
                                 const struct cb_verify_options *options) {
  const int64_t size = (int64_t)cb_type_size(trial->one->plan->vector_type);
  const struct cb_blob *blob = has_other_values(trial) ? &integers[trial->number].blob : trial->one->blob;
  return (struct cb_host_job){.kernel = trial->number,
                              .data = blob->bytes,
                              .data_bytes = blob->length,
                              .x = trial->x,
                              .x_bytes = trial->x_length * size,
                              .y = trial->y,
                              .y_bytes = trial->y_length * size,
                              .columns = trial->columns,
                              .heads = trial->way->heads,
                              .alpha = trial->kind->alpha,
                              .beta = trial->kind->beta,
                              .alpha_imag = trial->kind->alpha_imag,
                              .beta_imag = trial->kind->beta_imag,
                              .seed = options->seed * 1000,
                              .products = orders_of(options, trial->one->csr),
                              .repeatable = !trial->one->plan->atomics,
                              .result = trial->result};
}

/* ---- judging */

static void add_row(struct cb_verify_report *report, const struct cb_csr *csr, int64_t row) {
  const int64_t first = cb_csr_row(csr, row), length = cb_csr_row_length(csr, row);
  report->row = row;
  report->columns_count = length < CB_VERIFY_COLUMNS ? (int)length : CB_VERIFY_COLUMNS;
  for (int k = 0; k < report->columns_count; k++) report->columns[k] = csr->col_idx[first + k];
}

/* "; row 117 has 3 nonzeros, in columns 2 17 40: 3 in sell0 (layout sell, …)" */
static void describe_row(struct cb_text *text, const struct cb_verify_report *report, const struct trial *trial) {
  const struct cb_csr *csr = trial->one->csr;
  const int64_t length = cb_csr_row_length(csr, report->row);
  cb_text_add(text, "; row %lld has ", (long long)report->row);
  if (!length) cb_text_add_string(text, "no nonzeros");
  else cb_text_add(text, "%lld nonzero%s, in column%s", (long long)length, length > 1 ? "s" : "", length > 1 ? "s" : "");
  for (int k = 0; k < report->columns_count; k++) cb_text_add(text, " %lld", (long long)report->columns[k]);
  if (length > report->columns_count) cb_text_add_string(text, " …");
  if (length) cb_text_add_string(text, ": ");
  cb_locate_row(text, trial->one->plan, trial->one->assignment, csr, report->row);
}

/* Takes the text that follows the product's name. */
static void set_message(struct cb_verify_report *report, const struct trial *trial, struct cb_text *text) {
  const char *const what = text->failed ? "wrong, and there is no memory to say where" : cb_text_string(text);
  report->status = CB_ERR_WRONG;
  report->product = trial->kind->name;
  if (trial->columns.count)
    snprintf(report->message, sizeof report->message, "product '%s' of %d vectors by %s: %.900s", trial->kind->name,
             (int)trial->columns.count, trial->way->name, what);
  else if (trial->way->heads)
    snprintf(report->message, sizeof report->message, "product '%s' with heads: %.940s", trial->kind->name, what);
  else snprintf(report->message, sizeof report->message, "product '%s': %.960s", trial->kind->name, what);
  cb_text_release(text);
}

static void report_stop(struct cb_verify_report *report, const struct trial *trial,
                        const struct cb_host_job *job) {
  struct cb_text text = {0};
  if (job->outcome == CB_HOST_UNREPEATABLE) {
    const struct cb_host_columns *at = &trial->columns;
    const int64_t row = trial->way->by_row ? job->row / at->y_entry : at->count ? job->row % at->y_vector : job->row;
    add_row(report, trial->one->csr, row);
    cb_text_add(&text, "row %lld changes its bits with the order of warps", (long long)row);
    describe_row(&text, report, trial);
  } else {
    cb_text_add_string(&text, job->message);
  }
  set_message(report, trial, &text);
}

/* Of vector v, whose y is `result`. */
static void report_wrong(struct cb_verify_report *report, const struct trial *trial, int64_t v, const void *result,
                         const struct cb_comparison *comparison) {
  struct cb_text text = {0};
  const int parts = cb_type_parts(trial->one->plan->vector_type);
  const int64_t row = comparison->first_wrong / parts;
  const int unwritten = trial->kind->y == Y_MARKED &&
                        is_mark(result, trial->one->plan->vector_type, comparison->first_wrong);
  report->wrong_rows = comparison->wrong; /* of complex numbers, parts */
  report->got = comparison->got;
  report->expected = (double)comparison->expected;
  report->tolerance = comparison->tolerance;
  add_row(report, trial->one->csr, row);
  if (trial->columns.count) cb_text_add(&text, "vector %lld, ", (long long)v);
  cb_text_add(&text, "row %lld ", (long long)row);
  if (parts > 1) cb_text_add_string(&text, comparison->first_wrong % parts ? "(imaginary part) " : "(real part) ");
  if (unwritten) cb_text_add_string(&text, "is never written");
  else
    cb_text_add(&text, "is %.17g instead of %.17g, tolerance %.3g", report->got, report->expected, report->tolerance);
  cb_text_add(&text, "; %lld of %lld %s are wrong", (long long)comparison->wrong, (long long)comparison->rows,
              parts > 1 ? "parts of rows" : "rows");
  describe_row(&text, report, trial);
  set_message(report, trial, &text);
}

/* The vectors as doubles, which is what the oracle takes. */
static double *widen(const void *vector, enum cb_type of_entry, int64_t entries) {
  const enum cb_type type = cb_type_of_part(of_entry);
  const int64_t count = cb_type_parts(of_entry) * entries;
  double *wide = cb_alloc((size_t)count, sizeof *wide);
  for (int64_t i = 0; wide && i < count; i++) wide[i] = cb_real_get(vector, type, i);
  return wide;
}

static void count_rows(struct cb_verify_report *report, const struct trial *trial, int64_t v, const void *result,
                       const struct cb_expected *expected) {
  struct cb_comparison comparison;
  cb_oracle_compare(&comparison, expected, result, trial->one->plan->vector_type);
  report->rows += comparison.rows;
  report->exact_rows += comparison.exact;
  report->unbounded_rows += comparison.unbounded;
  if (comparison.worst_ratio > report->worst_ratio) report->worst_ratio = comparison.worst_ratio;
  if (comparison.wrong && !report->status) report_wrong(report, trial, v, result, &comparison);
}

/* One vector, out of all: room for it. */
struct one_vector {
  void *x, *y, *result;
};

static enum cb_status compare_vector(struct cb_verify_report *report, const struct trial *trial,
                                     const struct one_vector *room, int64_t v, const struct integer_data *integers,
                                     struct cb_diag *diag) {
  const struct cb_plan *plan = trial->one->plan;
  const struct cb_csr *csr = trial->one->csr;
  const struct cb_host_columns *at = &trial->columns;
  const size_t size = cb_type_size(plan->vector_type);
  struct cb_expected expected = {0};
  gather(room->x, trial->x, size, csr->cols, v * at->x_vector, at->x_entry);
  gather(room->y, trial->y, size, csr->rows, v * at->y_vector, at->y_entry);
  gather(room->result, trial->result, size, csr->rows, v * at->y_vector, at->y_entry);
  double *x = widen(room->x, plan->vector_type, csr->cols), *y = widen(room->y, plan->vector_type, csr->rows);
  struct cb_oracle_types types = cb_oracle_types_of(plan);
  if (trial->way->heads) types.matrix = CB_F32; /* to which a head is rounded */
  const struct cb_product product = {.types = types,
                                     .values = has_other_values(trial) ? integers[trial->number].values : NULL,
                                     .x = x,
                                     .y = y,
                                     .alpha = trial->kind->alpha,
                                     .beta = trial->kind->beta,
                                     .alpha_imag = trial->kind->alpha_imag,
                                     .beta_imag = trial->kind->beta_imag,
                                     .conjugated = plan->conjugated};
  enum cb_status s =
      x && y ? CB_OK : cb_fail_memory(diag, "vectors", (unsigned long long)(csr->cols + csr->rows) * 8);
  if (!s) s = cb_oracle_multiply(&expected, csr, &product, diag);
  if (!s) count_rows(report, trial, v, room->result, &expected);
  cb_expected_release(&expected);
  cb_free(x);
  cb_free(y);
  return s;
}

/* What lies between vectors is not the product's. */
static void compare_gaps(struct cb_verify_report *report, const struct trial *trial) {
  const enum cb_type type = trial->one->plan->vector_type;
  const struct cb_host_columns *at = &trial->columns;
  for (int64_t i = 0; i < trial->y_length && !report->status; i++) {
    const int64_t v = trial->way->by_row ? i % at->y_entry : i / at->y_vector;
    const int64_t row = trial->way->by_row ? i / at->y_entry : i % at->y_vector;
    if ((v < at->count && row < trial->one->csr->rows) || is_marked_entry(trial->result, type, i)) continue;
    struct cb_text text = {0};
    cb_text_add(&text, "element %lld of Y is written, which lies between vectors", (long long)i);
    set_message(report, trial, &text);
  }
}

static enum cb_status compare_rows(struct cb_verify_report *report, const struct trial *trial,
                                   const struct integer_data *integers, struct cb_diag *diag) {
  const struct cb_csr *csr = trial->one->csr;
  const size_t size = cb_type_size(trial->one->plan->vector_type), rows = (size_t)csr->rows;
  const struct one_vector room = {cb_alloc((size_t)csr->cols, size), cb_alloc(rows, size), cb_alloc(rows, size)};
  enum cb_status s =
      room.x && room.y && room.result ? CB_OK : cb_fail_memory(diag, "vectors", (unsigned long long)csr->cols * size);
  for (int64_t v = 0; v < count_vectors(trial) && !s; v++) s = compare_vector(report, trial, &room, v, integers, diag);
  if (!s && trial->columns.count) compare_gaps(report, trial);
  cb_free(room.x);
  cb_free(room.y);
  cb_free(room.result);
  return s;
}

/* Traces the first wrong row of the case, once. */
static void trace_row(struct cb_verify_report *report, const struct trial *trial, const struct cb_host_job *job,
                      const struct integer_data *integers, struct cb_host *host) {
  const struct integer_data *own = has_other_values(trial) ? &integers[trial->number] : NULL;
  const struct cb_trace_product product = {.x = trial->x,
                                           .y = trial->y,
                                           .alpha = trial->kind->alpha,
                                           .beta = trial->kind->beta,
                                           .values = own ? own->values : NULL,
                                           .blob = own ? &own->blob : trial->one->blob,
                                           .seed = job->seed,
                                           .is_of_row = 1,
                                           .row = report->row};
  struct cb_text text = {0};
  cb_trace_brief(&text, host, trial->one, &product, report->row);
  snprintf(report->trace, sizeof report->trace, "%s", text.failed ? "" : cb_text_string(&text));
  cb_text_release(&text);
}

static enum cb_status judge(struct cb_verify_report *report, const struct trial *trial,
                            const struct cb_host_job *job, const struct integer_data *integers,
                            struct cb_diag *diag) {
  report->products++;
  report->runs += job->products;
  report->run_seconds += job->seconds;
  if (job->outcome != CB_HOST_DONE) {
    if (!report->status) report_stop(report, trial, job);
    return CB_OK;
  }
  const enum cb_status s = compare_rows(report, trial, integers, diag);
  const int can_trace = trial->traces && !cb_plan_is_complex(trial->one->plan);
  if (can_trace && !trial->columns.count && !trial->way->heads && report->wrong_rows && !report->trace[0])
    trace_row(report, trial, job, integers, trial->traces);
  return s;
}

/* ---- the whole */

struct batch {
  struct cb_host *host;
  const struct cb_verify_case *cases;
  const struct cb_verify_options *options;
  int count, trials_count;
  struct trial *trials;
  struct cb_host_job *jobs;
  struct integer_data *integers;
};

static int count_trials(const struct cb_verify_case *cases, int count) {
  int trials = 0;
  for (int c = 0; c < count; c++)
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
      for (int w = 0; w < WAYS && concerns(&kinds[k], cases[c].plan); w++)
        trials += goes(&ways[w], &kinds[k], cases[c].plan);
  return trials;
}

static enum cb_status prepare(struct batch *batch, struct cb_diag *diag) {
  const int trials = count_trials(batch->cases, batch->count);
  batch->trials = cb_calloc((size_t)trials, sizeof *batch->trials);
  batch->jobs = cb_calloc((size_t)trials, sizeof *batch->jobs);
  batch->integers = cb_calloc((size_t)batch->count, sizeof *batch->integers);
  if (!batch->trials || !batch->jobs || !batch->integers)
    return cb_fail_memory(diag, "trials", (unsigned long long)trials * sizeof *batch->jobs);
  enum cb_status s = CB_OK;
  for (int c = 0; c < batch->count && !s; c++) {
    const uint64_t seed = batch->options->seed * 0x10001 + (uint64_t)c * 64;
    s = prepare_integers(&batch->integers[c], &batch->cases[c], seed + 7, diag);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && !s; k++)
      for (int w = 0; w < WAYS && !s; w++) {
        if (!concerns(&kinds[k], batch->cases[c].plan) || !goes(&ways[w], &kinds[k], batch->cases[c].plan)) continue;
        const int t = batch->trials_count++;
        batch->trials[t] = (struct trial){.one = &batch->cases[c], .kind = &kinds[k], .way = &ways[w], .number = c,
                                          .traces = batch->options->trace ? batch->host : NULL};
        s = prepare_trial(&batch->trials[t], seed + 8 * k, diag);
        batch->jobs[t] = job_of(&batch->trials[t], batch->integers, batch->options);
      }
  }
  return s;
}

static void release(struct batch *batch) {
  for (int t = 0; t < batch->trials_count; t++) release_trial(&batch->trials[t]);
  for (int c = 0; batch->integers && c < batch->count; c++) release_integers(&batch->integers[c]);
  cb_free(batch->trials);
  cb_free(batch->jobs);
  cb_free(batch->integers);
}

static int line_of(const struct cb_source *source) {
  int line = 1;
  for (int64_t i = 0; i < source->body; i++) line += source->text[i] == '\n';
  return line;
}

/* Everything that grows with rows and columns: the vectors of all trials, here and in the file that hands them over,
 * those of the emulated GPU, and the oracle's. */
static uint64_t bytes_of_vectors(const struct cb_verify_case *one, int trials) {
  const uint64_t rows = (uint64_t)one->csr->rows, cols = (uint64_t)one->csr->cols;
  const uint64_t size = cb_type_size(one->plan->vector_type);
  const uint64_t each = one->plan->vectors > 1 ? 2 * (uint64_t)one->plan->vectors : 1;
  return (uint64_t)trials * 2 * each * size * (cols + 2 * rows) + size * (cols + rows) + 8 * cols + 32 * rows;
}

static enum cb_status check_memory(const struct cb_verify_case *cases, int count, struct cb_diag *diag) {
  uint64_t bytes = 0;
  for (int c = 0; c < count; c++) bytes += bytes_of_vectors(&cases[c], count_trials(&cases[c], 1));
  return cb_available_check(bytes, "executing products with vectors of as many numbers as there are columns and rows",
                            diag);
}

/* Texts with checks begin with their constant, and say then in which line they are. */
static enum cb_status build(struct cb_host_program **program, struct cb_host *host,
                            const struct cb_verify_case *cases, int count, int checks, struct cb_diag *diag) {
  struct cb_host_kernel *kernels = cb_calloc((size_t)count, sizeof *kernels);
  struct cb_source *checked = cb_calloc((size_t)count, sizeof *checked);
  enum cb_status s = kernels && checked ? CB_OK : cb_fail_memory(diag, "kernels", (unsigned long long)count * sizeof *kernels);
  for (int c = 0; c < count && !s; c++) {
    const struct cb_source *source = checks ? &checked[c] : cases[c].source;
    if (checks) s = cb_checked_text(&checked[c], cases[c].source, cases[c].plan, 0, diag);
    if (!s)
      kernels[c] = (struct cb_host_kernel){.text = source->text + source->body,
                                           .first_line = line_of(cases[c].source),
                                           .symbol = cases[c].symbol,
                                           .vector_type = cases[c].plan->vector_type,
                                           .vectors = cases[c].plan->rows ? cases[c].plan->vectors : 1,
                                           .heads = cb_plan_has_heads(cases[c].plan) && cases[c].plan->rows,
                                           .form = cases[c].plan->form};
  }
  if (!s) s = cb_host_build(program, host, kernels, count, diag);
  for (int c = 0; checked && c < count; c++) cb_source_release(&checked[c]);
  cb_free(checked);
  cb_free(kernels);
  return s;
}

enum cb_status cb_verify_batch(struct cb_host *host, const struct cb_verify_case *cases, int count,
                               const struct cb_verify_options *options, struct cb_verify_report *reports,
                               struct cb_diag *diag) {
  struct batch batch = {.host = host, .cases = cases, .options = options, .count = count};
  struct cb_host_program *program = NULL;
  enum cb_status s = check_memory(cases, count, diag);
  if (!s) s = build(&program, host, cases, count, options->checks, diag);
  if (!s) s = prepare(&batch, diag);
  if (!s) s = cb_host_run(program, batch.jobs, batch.trials_count, diag);
  for (int c = 0; c < count; c++)
    reports[c] =
        (struct cb_verify_report){.row = -1,
                                  .checks = options->checks,
                                  .compile_seconds = program ? cb_host_build_seconds(program) : 0};
  for (int t = 0; t < batch.trials_count && !s; t++)
    s = judge(&reports[batch.trials[t].number], &batch.trials[t], &batch.jobs[t], batch.integers, diag);
  release(&batch);
  cb_host_program_free(program);
  return s;
}

enum cb_status cb_verify(const struct cb_verify_case *one, const struct cb_verify_options *options,
                         struct cb_verify_report *report, struct cb_diag *diag) {
  struct cb_host *host = NULL;
  *report = (struct cb_verify_report){.row = -1};
  struct cb_host_options host_options = options->host;
  if (host_options.job_seconds > 0)
    host_options.job_seconds += 1e-5 * (double)(one->csr->nnz + one->csr->rows);
  enum cb_status s = cb_host_open(&host, &host_options, diag);
  if (!s) s = cb_verify_batch(host, one, 1, options, report, diag);
  cb_host_close(host);
  if (!s && report->status) s = cb_fail_lines(diag, report->status, report->message);
  return s;
}

enum cb_status cb_verify_file(const char *path, const struct cb_verify_options *options,
                              struct cb_verify_file_report *report, struct cb_diag *diag) {
  struct cb_host *host = NULL;
  struct cb_host_selftest selftest = {0};
  const int orders = options->orders > 0 ? options->orders : 2;
  *report = (struct cb_verify_file_report){0};
  enum cb_status s = cb_host_open(&host, &options->host, diag);
  if (!s)
    s = cb_host_selftest(host, path, options->seed * 1000, orders, &selftest, diag);
  memcpy(report->output, selftest.output, sizeof report->output);
  report->compile_seconds = selftest.compile_seconds;
  report->run_seconds = selftest.run_seconds;
  report->network = selftest.network;
  if (!s) report->runs = orders;
  cb_host_close(host);
  return s;
}
