// SPDX-License-Identifier: Apache-2.0
/* The options that concern every kernel, and the walk over these and the layouts' own: see options.h. */
#include "analysis/options.h"

#include "analysis/layout.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const forms[] = {"ax", "add", "axpby", NULL};
static const char *const on_off[] = {"on", "off", NULL};
static const char *const tunes[] = {"off", "model", "measure", NULL};
static const char *const promises[] = {"data", "fixed", NULL};
static const char *const symmetries[] = {"auto", "on", "skew", "hermitian", "off", NULL};
static const char *const commits[] = {"any", "once", NULL};
static const char *const searches[] = {"hopeful", "all", "profile", "ready", NULL};

#define FIELD(field) .offset = offsetof(struct cb_options, field)

/* Each with its field of struct cb_options. */
static const struct general {
  size_t offset;
  struct cb_option option;
} general_table[] = {
    {FIELD(type), {.name = "type", .words = cb_precision_names, .standard = CB_PRECISION_F64,
                   .help = "values of A, and, behind a dash where others, x, y and sums"}},
    {FIELD(form), {.name = "form", .words = forms, .standard = CB_FORM_AXPBY,
                   .help = "y = Ax, y += Ax, or y = alpha A x + beta y"}},
    {FIELD(semiring), {.name = "semiring", .words = cb_semiring_names, .standard = CB_PLUS_TIMES,
                       .help = "what products add and multiply with; all but plus-times take alpha 1, and beta 0 or 1"}},
    {FIELD(conjugate), {.name = "conjugate", .words = on_off, .least = CB_ON, .standard = CB_OFF,
                        .help = "on: the values of a complex matrix are conjugated; of a transposed one that is its conjugate "
                                "transpose"}},
    {FIELD(values), {.name = "values", .words = promises, .standard = CB_VALUES_DATA,
                     .help = "fixed: they never change, so that what they have in common becomes text"}},
    {FIELD(symmetric), {.name = "symmetric", .words = symmetries, .standard = CB_SYMMETRIC_AUTO, .may_refuse = 1,
                        .help = "on, skew, hermitian: A is its transpose, that with the other sign, or with conjugated values, whatever "
                                "they are: half of it is stored where layouts can; auto: where fixed values show it"}},
    {FIELD(symmetric_storage), {.name = "symmetric-storage", .words = cb_auto_on_off, .standard = CB_AUTO,
                                .help = "half of a symmetric matrix is stored, where a layout can; auto: where it is beyond L2"}},
    {FIELD(stay_in_l2), {.name = "stay-in-l2", .words = cb_auto_on_off, .standard = CB_AUTO,
                         .help = "the matrix, for the next product, as far as there is room; auto: where L2 can hold it, and a "
                                 "part of some that are larger"}},
    {FIELD(check_symmetry), {.name = "check-symmetry", .words = on_off, .least = CB_ON, .standard = CB_OFF,
                             .help = "values that are not as option symmetric says are refused; off: the lower triangle counts"}},
    {FIELD(atomics), {.name = "atomics", .words = on_off, .least = CB_ON, .standard = CB_OFF,
                      .help = "permit floating-point atomics: not repeatable bit for bit"}},
    {FIELD(recipe), {.name = "recipe", .is_text = 1, .help = "which layouts store which part of the matrix"}},
    {FIELD(commit), {.name = "commit", .words = commits, .standard = CB_COMMITS_ANY,
                     .help = "how often a row of y is written; once: where parts add, sums wait for a last launch"}},
    {FIELD(vectors), {.name = "vectors", .least = 1, .most = CB_MOST_VECTORS, .standard = 1,
                      .help = "the text also multiplies with so many vectors at once, by further kernels"}},
    {FIELD(vector_threads), {.name = "vector-threads", .numbers = cb_lanes_of_a_row,
                             .help = "several vectors: threads that share those of a row, by rows, where the layout can; 0: by the "
                                     "matrix"}},
    {FIELD(vector_blocks), {.name = "vector-blocks", .most = 8,
                            .help = "several vectors: thread blocks that a multiprocessor shall hold, which bounds the registers; "
                                    "0: by the sums of a thread"}},
    {FIELD(copy_x), {.name = "copy-x", .words = cb_auto_on_off, .standard = CB_AUTO,
                     .help = "several vectors by columns: X is laid out by rows in scratch first, and Y where its rows are "
                             "scattered; auto: where that is predicted to be faster"}},
    {FIELD(tune), {.name = "tune", .words = tunes, .standard = CB_TUNE_MODEL,
                   .help = "recipe auto is sell, the best by the cost model, or the fastest on the GPU"}},
    {FIELD(search), {.name = "search", .words = searches, .standard = CB_SEARCH_HOPEFUL,
                     .help = "recipe auto: plan those that can win, or all, or only the best by a profile, or of these one that "
                             "needs no compiler (as libcbgen does)"}},
    {FIELD(ready_loss), {.name = "ready-loss", .most = INT64_C(1) << 40, .standard = 65536,
                         .help = "search=ready: ns of a product by which what needs no compiler may be slower"}},
    {FIELD(program_loss), {.name = "program-loss", .most = INT64_C(1) << 40,
                           .help = "recipe auto: ns of a product by which one may be slower that solvers, or linear programs, "
                                   "gain by"}},
    {FIELD(one_meeting), {.name = "one-meeting", .words = on_off, .least = CB_ON, .standard = CB_OFF,
                          .help = "program-loss is for solvers whose thread blocks meet once in an iteration, as those of cg for "
                                  "small systems: they want rows in order"}},
    {FIELD(fuse), {.name = "fuse", .words = cb_auto_on_off, .standard = CB_AUTO,
                   .help = "parts of a split share one launch where they can; auto: when that is predicted to be "
                           "faster"}},
    {FIELD(long_row), {.name = "long-row", .least = 1, .most = INT64_C(1) << 31, .standard = 1024,
                       .help = "recipes cb-long and sell-long: rows of more nonzeros are split off"}},
    {FIELD(bake_limit), {.name = "bake-limit", .most = 16384, .standard = 64,
                         .help = "index tables up to this many entries go into the text"}},
    {FIELD(index_limit), {.name = "index-limit", .most = INT32_MAX, .standard = INT32_MAX,
                          .help = "for tests: larger indices have 64 bits in the text"}},
};
enum { GENERAL = sizeof general_table / sizeof *general_table };

/* ---- the walk over all tables */

/* Where an option's row stands and where its value lies. */
struct place {
  const struct cb_option *option; /* NULL: there are no more */
  size_t offset;
};

static size_t setting_offset(int layout, int number) {
  return offsetof(struct cb_options, settings) +
         (size_t)(layout * CB_MAX_SETTINGS + number) * sizeof(int64_t);
}

static struct place place_of(int number) {
  if (number < GENERAL) return (struct place){&general_table[number].option, general_table[number].offset};
  number -= GENERAL;
  for (int i = 0; cb_layout_table[i]; number -= cb_layout_table[i++]->options_count)
    if (number < cb_layout_table[i]->options_count)
      return (struct place){&cb_layout_table[i]->options[number], setting_offset(i, number)};
  return (struct place){0};
}

const struct cb_option *cb_option_at(int number) { return place_of(number).option; }

int cb_option_find(const char *name) {
  const struct cb_option *option;
  for (int i = 0; (option = cb_option_at(i)); i++)
    if (!strcmp(option->name, name)) return i;
  return -1;
}

int64_t cb_option_value(const struct cb_options *options, int number) {
  return *(const int64_t *)((const char *)options + place_of(number).offset);
}

void cb_option_set(struct cb_options *options, int number, int64_t value) {
  *(int64_t *)((char *)options + place_of(number).offset) = value;
}

const int64_t *cb_settings(const struct cb_options *options, const struct cb_layout *layout) {
  int number = 0;
  while (cb_layout_table[number] && cb_layout_table[number] != layout) number++;
  return cb_layout_table[number] ? options->settings[number] : NULL;
}

/* Made once in a process: plans compare theirs with them. */
static struct cb_options usual;

static void make_usual(void) {
  const struct cb_option *option;
  usual.recipe = "auto";
  for (int i = 0; (option = cb_option_at(i)); i++)
    if (!option->is_text) cb_option_set(&usual, i, option->standard);
}

void cb_options_default(struct cb_options *options) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_usual);
  *options = usual;
}

/* ---- names that are none */

/* Number of edits between two short words: for suggestions. */
static size_t distance(const char *a, const char *b) {
  enum { LONGEST = 24 };
  size_t row[LONGEST + 1];
  const size_t length = strlen(b);
  if (length > LONGEST) return SIZE_MAX;
  for (size_t j = 0; j <= length; j++) row[j] = j;
  for (size_t i = 1; *a; a++, i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= length; j++) {
      const size_t replace = diagonal + (*a != b[j - 1]);
      const size_t insert = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
      diagonal = row[j];
      row[j] = replace < insert ? replace : insert;
    }
  }
  return row[length];
}

/* Options that are no more, by how their names begin, and what to use instead. */
static const struct {
  const char *prefix, *instead;
} removed_options[] = {{"panel-", "was removed with recipe 'panel'; use recipe 'sell'"},
                       {"hot-warm", "was renamed; use 'hot-packed'"}};

enum cb_status cb_options_check_removed(const char *name, struct cb_diag *diag) {
  for (size_t i = 0; i < sizeof removed_options / sizeof *removed_options; i++)
    if (!strncmp(name, removed_options[i].prefix, strlen(removed_options[i].prefix)))
      return cb_fail(diag, CB_ERR_ARGUMENT, "option '%s' %s", name, removed_options[i].instead);
  return CB_OK;
}

static const char *nearest_name(const char *name) {
  const struct cb_option *option;
  const char *nearest = NULL;
  size_t least = 3; /* more edits are no misspelling */
  for (int i = 0; (option = cb_option_at(i)); i++) {
    const size_t edits = distance(name, option->name);
    if (edits >= least) continue;
    least = edits;
    nearest = option->name;
  }
  return nearest;
}

static enum cb_status fail_unknown(const char *name, struct cb_diag *diag) {
  const enum cb_status s = cb_options_check_removed(name, diag);
  if (s) return s;
  const char *nearest = nearest_name(name);
  if (nearest) return cb_fail(diag, CB_ERR_ARGUMENT, "unknown option '%s'; did you mean '%s'?", name, nearest);
  return cb_fail(diag, CB_ERR_ARGUMENT, "unknown option '%s'", name);
}

/* ---- setting and checking */

enum cb_status cb_options_set(struct cb_options *options, const char *name, const char *value,
                              struct cb_diag *diag) {
  const int number = cb_option_find(name);
  int64_t parsed;
  if (number < 0) return fail_unknown(name, diag);
  if (cb_option_at(number)->is_text) {
    *(const char **)((char *)options + place_of(number).offset) = value;
    return CB_OK;
  }
  const enum cb_status s = cb_option_parse(&parsed, cb_option_at(number), value, diag);
  if (!s) cb_option_set(options, number, parsed);
  return s;
}

/* One of them, "name=value". */
static enum cb_status apply_one(struct cb_options *options, const char *setting, size_t length, struct cb_diag *diag) {
  char name[64], *value;
  snprintf(name, sizeof name, "%.*s", (int)length, setting);
  value = strchr(name, '=');
  if (length >= sizeof name || !value) return cb_fail(diag, CB_ERR_ARGUMENT, "'%s' sets no option", name);
  *value++ = 0;
  const int number = cb_option_find(name);
  if (number >= 0 && cb_option_at(number)->is_text)
    return cb_fail(diag, CB_ERR_ARGUMENT, "settings of a recipe do not set '%s'", name);
  return cb_options_set(options, name, value, diag);
}

enum cb_status cb_options_apply(struct cb_options *options, const char *settings, struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  while (!s && *(settings += strspn(settings, " "))) {
    const size_t length = strcspn(settings, " ");
    s = apply_one(options, settings, length, diag);
    settings += length;
  }
  return s;
}

/* What is not done of complex numbers, whatever the layout. */
static enum cb_status check_complex(const struct cb_options *options, struct cb_diag *diag) {
  const char *what = options->semiring != CB_PLUS_TIMES ? "other semirings than plus-times"
                     : options->atomics == CB_ON        ? "atomics"
                     : options->epilogue && *options->epilogue ? "an epilogue or scalars in device memory"
                                                        : NULL;
  if (!what || !cb_precision_is_complex(options->type)) return CB_OK;
  return cb_fail(diag, CB_ERR_UNSUPPORTED, "there are no kernels for complex numbers with %s: 'type' is %s", what,
                 cb_precision_names[options->type]);
}

enum cb_status cb_options_check(const struct cb_options *options, struct cb_diag *diag) {
  const struct cb_option *option;
  enum cb_status s = CB_OK;
  if (!options->recipe) return cb_fail(diag, CB_ERR_ARGUMENT, "option 'recipe' has no value");
  for (int i = 0; (option = cb_option_at(i)) && !s; i++)
    if (!option->is_text) s = cb_option_check(option, cb_option_value(options, i), diag);
  if (!s && options->semiring != CB_PLUS_TIMES && options->atomics == CB_ON)
    s = cb_fail(diag, CB_ERR_ARGUMENT, "option 'atomics' must be off with semiring '%s': no GPU has such atomics",
                cb_semiring_names[options->semiring]);
  if (!s && options->symmetric == CB_SYMMETRIC_SKEW && options->semiring != CB_PLUS_TIMES)
    s = cb_fail(diag, CB_ERR_ARGUMENT, "option 'symmetric' takes skew with semiring plus-times only");
  if (!s && options->symmetric == CB_SYMMETRIC_HERMITIAN && !cb_precision_is_complex(options->type))
    s = cb_fail(diag, CB_ERR_ARGUMENT, "option 'symmetric' takes hermitian with types of complex numbers only");
  if (!s && options->check_symmetry == CB_ON && !cb_promises_symmetry(options))
    s = cb_fail(diag, CB_ERR_ARGUMENT, "option 'check-symmetry' checks a promise: option 'symmetric' must be on, skew or hermitian");
  if (!s && options->vectors > 1 && (options->semiring != CB_PLUS_TIMES || options->atomics == CB_ON))
    s = cb_fail(diag, CB_ERR_ARGUMENT, "option 'vectors' takes semiring plus-times, without atomics");
  if (!s) s = check_complex(options, diag);
  for (int i = 0; cb_layout_table[i] && !s; i++)
    if (cb_layout_table[i]->check) s = cb_layout_table[i]->check(options->settings[i], diag);
  return s;
}

void cb_options_help(struct cb_text *text) {
  for (int i = 0; i < GENERAL; i++) cb_option_help(text, &general_table[i].option);
  for (int i = 0; cb_layout_table[i]; i++) {
    const struct cb_layout *layout = cb_layout_table[i];
    if (!layout->options_count) continue;
    cb_text_add(text, "\n%s: %s\n", layout->name, layout->summary);
    for (int k = 0; k < layout->options_count; k++) cb_option_help(text, &layout->options[k]);
  }
}
