// SPDX-License-Identifier: Apache-2.0
/* A kernel's text with checks: see checked.h. One pass over the lines behind the device prelude. A line that begins a
 * function of the tables gets its check behind the "{"; in the other lines, and in the rest of these, the places that
 * are said below get theirs. */
#include "codegen/checked.h"

#include "base/memory.h"
#include "codegen/expand.h"
#include "codegen/lines.h"

#include <stdio.h>
#include <string.h>

struct pass {
  struct cb_text *out;
  const struct cb_plan *plan;
  const struct cb_region *region; /* whose namespace it is; NULL: none */
  int checks;                     /* written so far */
};

static size_t name_length(const char *at, const char *end) {
  size_t length = 0;
  while (at + length < end && cb_is_name(at[length])) length++;
  return length;
}

/* ---- what there is to check */

static int is_called(const char *name, size_t length, const char *word) {
  return strlen(word) == length && !memcmp(name, word, length);
}

static const struct cb_array *find_array(const struct cb_region *region, const char *name, size_t length) {
  for (int i = 0; region && i < region->arrays_count; i++)
    if (is_called(name, length, region->arrays[i].name)) return &region->arrays[i];
  return NULL;
}

/* What an accessor reads: an array, or the slots of values. */
struct accessed {
  char name[40];
  int64_t count; /* −1: nothing that is counted */
};

static struct accessed access_of(const struct cb_array *array, int64_t count) {
  struct accessed accessed = {"", count};
  if (array) snprintf(accessed.name, sizeof accessed.name, "%s", array->name);
  return accessed;
}

/* The value slots in memory. An array of mixed contents has them among others. */
static struct accessed value_slots(const struct cb_region *region) {
  for (int i = 0; i < region->arrays_count; i++) {
    const struct cb_array *array = &region->arrays[i];
    if (array->role == CB_ROLE_VALUES) return access_of(array, array->count);
    if (array->role == CB_ROLE_MIXED)
      return access_of(array, array->count * (int64_t)cb_type_size(array->type) /
                                  (int64_t)cb_type_size(region->value_type));
  }
  return access_of(NULL, -1);
}

static struct accessed find_accessed(const struct cb_region *region, const char *name, size_t length) {
  static const char *const values[] = {"value", "value_cached", "value_vector"}, vector[] = "_vector";
  const size_t suffix = sizeof vector - 1;
  if (!region) return access_of(NULL, -1);
  for (size_t i = 0; i < sizeof values / sizeof *values; i++)
    if (is_called(name, length, values[i])) return value_slots(region);
  if (is_called(name, length, "value_of")) {
    struct accessed table = {"value_table", region->table_count ? region->table_count : -1};
    return table;
  }
  const struct cb_array *array = find_array(region, name, length);
  if (!array && length > suffix && !memcmp(name + length - suffix, vector, suffix))
    array = find_array(region, name, length - suffix);
  return access_of(array, array ? array->count : -1);
}

/* ---- writing checks */

static int64_t bytes_of(const struct cb_array *array) {
  return array->count * (int64_t)cb_type_size(array->type);
}

/* "check_index(kCheckRecord, INDEX, N, COUNT, "sell0: values", LINE)" */
struct check {
  const char *index;
  size_t index_length;
  const char *n, *count;
  const char *region, *what; /* region NULL: none */
  const char *line;
};

static void add_check(struct pass *pass, const struct check *check) {
  cb_text_add(pass->out, "check_index(kCheckRecord, %.*s, %s, %s, \"%s%s%s\", %s)", (int)check->index_length,
              check->index, check->n, check->count, check->region ? check->region : "", check->region ? ": " : "",
              check->what, check->line);
  pass->checks++;
}

/* ---- functions that check what they are called with */

/* The last word before `end`. */
static const char *last_word(const char *begin, const char *end) {
  while (end > begin && cb_is_name(end[-1])) end--;
  return end;
}

/* Copies the line up to ") {", which becomes ", int line = …) { INDEX = check; ". */
static void check_parameter(struct pass *pass, struct cb_line *line, const char *end, const struct check *check) {
  cb_line_copy_until(pass->out, line, end);
  cb_text_add(pass->out, ", int line = __builtin_LINE()) { %.*s = ", (int)check->index_length, check->index);
  add_check(pass, check);
  cb_text_add_string(pass->out, ";");
  line->bytes += strlen(") {");
  line->length -= strlen(") {");
}

/* "TYPE NAME(const Arrays &arrays, int i) {": whether it is an accessor of what is counted; then it is checked. */
static int check_accessor(struct pass *pass, struct cb_line *line) {
  const char *const arrays = cb_line_find(*line, "(const Arrays &");
  const char *const end = arrays ? cb_line_find(*line, ") {") : NULL;
  const char *const comma = end ? memchr(arrays, ',', (size_t)(end - arrays)) : NULL;
  if (!comma || memchr(comma + 1, ',', (size_t)(end - comma - 1))) return 0;
  const char *const name = last_word(line->bytes, arrays), *const index = last_word(comma, end);
  const struct accessed accessed = find_accessed(pass->region, name, (size_t)(arrays - name));
  char count[24];
  const int has_name = index < end && last_word(comma, index - 1) < index - 1; /* else any index gives the same */
  if (accessed.count < 0 || !has_name) return 0;
  snprintf(count, sizeof count, "%lld", (long long)accessed.count);
  const struct check check = {.index = index,
                              .index_length = (size_t)(end - index),
                              .n = cb_line_begins(*line, "template <int n>") ? "n" : "1",
                              .count = count,
                              .region = pass->region->name,
                              .what = accessed.name,
                              .line = "line"};
  check_parameter(pass, line, end, &check);
  return 1;
}

/* Functions through which regions reach vectors: the second parameter is an index. */
static const struct vector_function {
  const char *name, *vector;
} vector_functions[] = {
    {" load_x(", "x"},         {" commit(", "y"},  {" commit_more(", "y"},    {" commit_atomic(", "y"},
    {" set_sum(", "y"},        {" add_sum(", "y"}, {" add_sum_atomic(", "y"}, {" keep(", "y"},
    {" keep_more(", "y"}, {" commit_kept(", "y"}};

static int check_vector(struct pass *pass, struct cb_line *line) {
  const char *const vectors = cb_line_find(*line, "(const Vectors &");
  const char *const end = vectors ? cb_line_find(*line, ") {") : NULL;
  for (size_t f = 0; end && f < sizeof vector_functions / sizeof *vector_functions; f++) {
    const struct vector_function *function = &vector_functions[f];
    const char *const first = memchr(vectors, ',', (size_t)(end - vectors));
    const char *const name = cb_line_find(*line, function->name);
    if (!first || !name || name > vectors) continue;
    const char *const second = memchr(first + 1, ',', (size_t)(end - first - 1));
    const char *const behind = second ? second : end, *const index = last_word(first, behind);
    char count[24];
    snprintf(count, sizeof count, "%lld",
             (long long)(*function->vector == 'x' ? pass->plan->cols : pass->plan->rows));
    const struct check check = {.index = index,
                                .index_length = (size_t)(behind - index),
                                .n = "1",
                                .count = count,
                                .what = function->vector,
                                .line = "line"};
    check_parameter(pass, line, end, &check);
    return 1;
  }
  return 0;
}

/* ---- other places */

/* Where the expression at `at` ends: at a comma, semicolon or bracket that is not its own; NULL: not in this line. */
static const char *end_of_expression(const char *at, const char *end) {
  for (int depth = 0; at < end; at++) {
    const int opens = *at == '(' || *at == '[' || *at == '{', closes = *at == ')' || *at == ']' || *at == '}';
    if (!depth && (closes || *at == ',' || *at == ';')) return at;
    depth += opens - closes;
  }
  return NULL;
}

/* What stands before "arrays.NAME": a cast to another type of element, and whether it is loaded at once. */
struct before {
  const char *type; /* NULL: no cast */
  size_t type_length;
  int is_loaded;
};

static struct before before_of(const char *begin, const char *at) {
  static const char cast[] = "(const ", *const loads[] = {"load(", "load_stream(", "load_hinted(", "load_early(",
                                                       "load_early_hinted("};
  struct before before = {NULL, 0, 0};
  if (at - begin > 3 && !memcmp(at - 3, " *)", 3)) {
    const char *open = at - 3;
    while (open > begin && *open != '(') open--;
    if (!memcmp(open, cast, sizeof cast - 1)) {
      before.type = open + sizeof cast - 1;
      before.type_length = (size_t)(at - 3 - before.type);
      at = open;
    }
  }
  for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
    if ((size_t)(at - begin) >= strlen(loads[i]) && !memcmp(at - strlen(loads[i]), loads[i], strlen(loads[i])))
      before.is_loaded = 1;
  return before;
}

/* At "NAME + INDEX", behind "arrays." or "vectors.": checks the index, where the name is that of something counted. */
static void check_place(struct pass *pass, struct cb_line *line, const char *begin, const char *owner) {
  static const char plus[] = " + ";
  const char *const name = line->bytes, *const end = name + line->length;
  const size_t length = name_length(name, end);
  const char *const index = name + length + sizeof plus - 1;
  if (index >= end || memcmp(name + length, plus, sizeof plus - 1)) return;
  const char *const behind = end_of_expression(index, end);
  const struct cb_array *array = *owner == 'a' ? find_array(pass->region, name, length) : NULL;
  const int sums = is_called(name, length, "carry_sums"), counters = is_called(name, length, "carry_counters");
  const struct before before = before_of(begin, name - strlen(owner));
  char count[120], what[40];
  if (!behind || (!array && (*owner == 'a' || !(sums || counters)))) return;
  snprintf(what, sizeof what, "%.*s", (int)length, name);
  if (!array) snprintf(count, sizeof count, "%lld", (long long)(sums ? pass->plan->carry_sums : pass->plan->carry_counters));
  else if (before.type)
    snprintf(count, sizeof count, "%lld / (long long)sizeof(%.*s)", (long long)bytes_of(array), (int)before.type_length, before.type);
  else snprintf(count, sizeof count, "%lld", (long long)array->count);
  const struct check check = {.index = index,
                              .index_length = (size_t)(behind - index),
                              .n = before.is_loaded || counters ? "1" : "0",
                              .count = count,
                              .region = array ? pass->region->name : NULL,
                              .what = what,
                              .line = "__LINE__"};
  cb_line_copy_until(pass->out, line, index);
  add_check(pass, &check);
  line->bytes = behind;
  line->length = (size_t)(end - behind);
}

/* At the pointer of a load_l2 or store_l2: a place among the carry slots. */
static void check_slot(struct pass *pass, struct cb_line *line) {
  const char *const end = end_of_expression(line->bytes, line->bytes + line->length);
  static const char counter[] = "counter,"; /* of last_to_arrive: checked by its caller */
  if (!end || cb_line_begins(*line, counter)) return;
  cb_text_add_string(pass->out, "check_place(kCheckRecord, ");
  cb_line_copy_until(pass->out, line, end);
  cb_text_add(pass->out, ", vectors.carry_sums, %lld, \"carry_sums\", __LINE__)", (long long)pass->plan->carry_sums);
  pass->checks++;
}

static const struct place {
  const char *word;
  int is_slot;
} places[] = {{"arrays.", 0}, {"vectors.", 0}, {"load_l2(", 1}, {"store_l2(", 1}};
enum { PLACES = sizeof places / sizeof *places };

/* Copies the line with a check at each place. */
static void copy_places(struct pass *pass, struct cb_line line) {
  const char *const begin = line.bytes;
  for (;;) {
    const char *first = NULL;
    const struct place *place = NULL;
    for (int i = 0; i < PLACES; i++) {
      const char *at = cb_line_find(line, places[i].word);
      if (!at || (first && first < at)) continue;
      first = at;
      place = &places[i];
    }
    if (!first) break;
    cb_line_copy_until(pass->out, &line, first + strlen(place->word));
    if (place->is_slot) check_slot(pass, &line);
    else check_place(pass, &line, begin, place->word);
  }
  cb_text_add_bytes(pass->out, line.bytes, line.length);
}

/* ---- the pass */

static void enter_region(struct pass *pass, struct cb_line line) {
  static const char space[] = "namespace ";
  const char *const name = line.bytes + sizeof space - 1;
  const size_t length = name_length(name, line.bytes + line.length);
  for (int r = 0; r < pass->plan->regions_count; r++)
    if (is_called(name, length, pass->plan->regions[r].name)) pass->region = &pass->plan->regions[r];
}

/* Whether the line is one of a function that is checked already. */
static int copy_line(struct pass *pass, struct cb_line line, int inside) {
  if (cb_line_begins(line, "namespace ")) enter_region(pass, line);
  if (cb_line_begins(line, "}  // namespace ")) pass->region = NULL;
  const int is_head = cb_line_begins(line, "CBGEN_DEVICE ") || cb_line_begins(line, "template <int n> CBGEN_DEVICE ");
  const int is_accessor = is_head && check_accessor(pass, &line);
  const int ends = cb_line_begins(line, "}") || (is_accessor && cb_line_find(line, "}"));
  if (is_head && !is_accessor) check_vector(pass, &line);
  if (inside || is_accessor) cb_text_add_bytes(pass->out, line.bytes, line.length);
  else copy_places(pass, line);
  return (inside || is_accessor) && !ends;
}

static void copy_body(struct pass *pass, const char *text) {
  for (int inside = 0; *text;) {
    const struct cb_line line = cb_line_at(text);
    if (!strncmp(text, "#ifndef __CUDACC_RTC__", strlen("#ifndef __CUDACC_RTC__"))) break;
    inside = copy_line(pass, line, inside);
    text += line.length;
  }
}

static int line_of_body(const struct cb_source *source) {
  int line = 1;
  for (int64_t i = 0; i < source->body; i++) line += source->text[i] == '\n';
  return line;
}

/* The prelude's last line follows what checks call: what stands behind it is what the emulation takes. */
static enum cb_status add_prelude(struct cb_text *text, const struct cb_source *source, struct cb_diag *diag) {
  const char *const behind = source->text + source->body;
  const char *last = behind - 1;
  while (last > source->text && last[-1] != '\n') last--;
  struct cb_scope scope = {0};
  cb_text_add_bytes(text, source->text, (size_t)(last - source->text));
  const enum cb_status s = cb_expand(text, "checks", &scope, diag);
  cb_text_add_bytes(text, last, (size_t)(behind - last));
  return s;
}

enum cb_status cb_checked_text(struct cb_source *checked, const struct cb_source *source, const struct cb_plan *plan,
                               uint64_t record, struct cb_diag *diag) {
  struct cb_text text = {0};
  struct pass pass = {.out = &text, .plan = plan};
  *checked = (struct cb_source){0};
  if (!source->body) return cb_fail(diag, CB_ERR_UNSUPPORTED, "the kernel's text has no device prelude, so it cannot be checked");
  enum cb_status s = add_prelude(&text, source, diag);
  const int64_t body = (int64_t)text.length;
  cb_text_add(&text, "constexpr unsigned long long kCheckRecord = 0x%llxu;\n#line %d\n", (unsigned long long)record,
              line_of_body(source));
  if (!s) copy_body(&pass, source->text + source->body);
  const char *const host = strstr(source->text + source->body, "\n#ifndef __CUDACC_RTC__");
  if (host) cb_text_add_string(&text, host + 1);
  if (!s && plan->nnz && !pass.checks)
    s = cb_fail(diag, CB_ERR_UNSUPPORTED, "nothing in the kernel's text is known well enough to be checked");
  const int64_t length = (int64_t)text.length;
  if (!s && text.failed) s = cb_fail_memory(diag, "a text with checks", (unsigned long long)length);
  if (!s) *checked = (struct cb_source){cb_text_detach(&text), length, body};
  cb_text_release(&text);
  return s;
}
