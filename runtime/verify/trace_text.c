// SPDX-License-Identifier: Apache-2.0
/* The traced form of a kernel's text: see trace_text.h. One pass over the lines: a line is copied, or is a row of the
 * tables below. */
#include "runtime/verify/trace_text.h"

#include "codegen/lines.h"

#include <string.h>

/* ---- the functions that say where they were called */

enum returns { AS_IT_IS, LOADED, VALUE, VALUES };

struct function {
  const char *begins;
  enum returns returns;
};

static const struct function functions[] = {
    {"CBGEN_DEVICE sum_t add(sum_t", AS_IT_IS},
    {"CBGEN_DEVICE sum_t product(sum_t", AS_IT_IS},
    {"CBGEN_DEVICE sum_t add_product(sum_t", AS_IT_IS},
    {"CBGEN_DEVICE sum_t total(sum_t", AS_IT_IS},
    {"CBGEN_DEVICE sum_t load_x(", LOADED},
    {"CBGEN_DEVICE sum_t value(", VALUE},
    {"CBGEN_DEVICE sum_t value_cached(", VALUE},
    {"template <int n> CBGEN_DEVICE Vector<sum_t, n> value_vector(", VALUES},
};

/* Words of lines outside of those, and of their bodies. */
static const char *const words[][2] = {
    {"constexpr sum_t ", "static const sum_t "}, /* nodes are made at run time */
    {"return sum != 0 || term != 0 ? 1 : 0;", "return traced_or(sum, term);"},
    {"return value != 0 && x != 0 ? 1 : 0;", "return traced_and(value, x);"},
    {"not_a_number<sum_t>()", "sum_t(__builtin_nan(\"\"))"},
    {"infinity<sum_t>()", "sum_t(__builtin_inf())"},
};

static void copy_words(struct cb_text *out, struct cb_line line) {
  for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
    const char *at = cb_line_find(line, words[w][0]);
    if (!at) continue;
    cb_line_copy_until(out, &line, at);
    cb_text_add_string(out, words[w][1]);
    line.bytes += strlen(words[w][0]);
    line.length -= strlen(words[w][0]);
    w = (size_t)-1; /* the rest may have another */
  }
  cb_text_add_bytes(out, line.bytes, line.length);
}

/* "BEFORE EXPRESSION;" becomes "BEFORE trace_at.NAME(EXPRESSION MORE);", if the line has it. */
static void copy_wrapped(struct cb_text *out, struct cb_line line, const char *before, const char *name,
                         const char *more) {
  const char *const at = cb_line_find(line, before), *const end = memrchr(line.bytes, ';', line.length);
  if (!at || !end) {
    copy_words(out, line);
    return;
  }
  cb_line_copy_until(out, &line, at + strlen(before));
  cb_text_add(out, "trace_at.%s(", name);
  struct cb_line expression = {line.bytes, (size_t)(end - line.bytes)};
  copy_words(out, expression);
  cb_text_add(out, "%s)", more);
  cb_text_add_bytes(out, end, (size_t)(line.bytes + line.length - end));
}

static void copy_body(struct cb_text *out, struct cb_line line, enum returns returns) {
  if (returns == LOADED)
    copy_wrapped(out, line, "return ", "loaded", "");
  else if (returns == VALUE)
    copy_wrapped(out, line, "return ", "value", "");
  else if (returns == VALUES)
    copy_wrapped(out, line, "values.at[i] = ", "value", ", i");
  else
    copy_words(out, line);
}

/* The parameters and "{" of a function, which get the line of the call, and of a value its slot. */
static void copy_head(struct cb_text *out, struct cb_line *line, const struct function *function, int region) {
  const char *const end = cb_line_find(*line, ") {");
  const struct cb_line head = {line->bytes, end ? (size_t)(end - line->bytes) : 0};
  const int is_value = function->returns == VALUE || function->returns == VALUES;
  if (!end) return;
  const int has_slot = is_value && cb_line_find(head, " slot") != NULL;
  cb_line_copy_until(out, line, end);
  cb_text_add(out, "%s, int trace_line = __builtin_LINE()) { const emulated::At trace_at(trace_line",
              is_value && !has_slot ? " slot" : "");
  if (is_value) cb_text_add(out, ", %d, (long)slot", region);
  cb_text_add_string(out, ");");
  line->bytes += 3;
  line->length -= 3;
}

/* ---- the pass */

struct pass {
  struct cb_text *out;
  const struct cb_plan *plan;
  const struct function *inside; /* of several lines; NULL: none */
  int region;
  int types; /* that were found: sum_t, vector_t */
};

static void copy_type(struct pass *pass, struct cb_line line) {
  const int is_sum = cb_line_begins(line, "using sum_t = ");
  const struct cb_plan *plan = pass->plan;
  const char *const own = cb_type_entry_name(plan->vector_type), *const sum = cb_type_entry_name(plan->sum_type);
  pass->types++;
  if (is_sum || plan->vector_type == plan->sum_type)
    cb_text_add(pass->out, "using %s = traced<%s>;\n", is_sum ? "sum_t" : "vector_t", sum);
  else
    cb_text_add(pass->out, "using vector_t = traced_entry<%s>;\n", own);
}

static void enter_region(struct pass *pass, struct cb_line line) {
  static const char space[] = "namespace ";
  for (int r = 0; r < pass->plan->regions_count; r++) {
    const char *const name = pass->plan->regions[r].name;
    const size_t length = strlen(name);
    if (line.length > sizeof space + length && !memcmp(line.bytes + sizeof space - 1, name, length) &&
        line.bytes[sizeof space - 1 + length] == ' ')
      pass->region = r;
  }
}

static const struct function *function_of(struct cb_line line) {
  for (size_t f = 0; f < sizeof functions / sizeof *functions; f++)
    if (cb_line_begins(line, functions[f].begins)) return &functions[f];
  return NULL;
}

static void copy_line(struct pass *pass, struct cb_line line) {
  const struct function *const function = pass->inside ? pass->inside : function_of(line);
  if (cb_line_begins(line, "using sum_t = ") || cb_line_begins(line, "using vector_t = ")) {
    copy_type(pass, line);
    return;
  }
  if (cb_line_begins(line, "namespace ")) enter_region(pass, line);
  if (!function) {
    copy_words(pass->out, line);
    return;
  }
  const int is_whole = !pass->inside && cb_line_find(line, "}") != NULL, ends = cb_line_begins(line, "}");
  if (!pass->inside) copy_head(pass->out, &line, function, pass->region);
  copy_body(pass->out, line, function->returns);
  pass->inside = is_whole || ends ? NULL : function;
}

enum cb_status cb_trace_text(struct cb_text *out, const char *text, const struct cb_plan *plan, struct cb_diag *diag) {
  static const char *const untraced[] = {"mma_f16_1688(", "mma_bf16_1688(", "mma_tf32_1688("};
  struct pass pass = {.out = out, .plan = plan};
  for (size_t i = 0; i < sizeof untraced / sizeof *untraced; i++)
    if (strstr(text, untraced[i]))
      return cb_fail(diag, CB_ERR_UNSUPPORTED,
                     "a trace does not follow numbers through tensor cores of narrow types; use --type=f64, or another "
                     "recipe");
  while (*text) {
    const struct cb_line line = cb_line_at(text);
    copy_line(&pass, line);
    text += line.length;
  }
  if (pass.types != (cb_plan_has_heads(plan) && plan->launches_count ? 4 : 2)) /* in the namespace `heads`, too */
    return cb_fail(diag, CB_ERR_FORMAT, "the text does not say what sum_t and vector_t are");
  return out->failed ? cb_fail_memory(diag, "the text of a trace", out->length) : CB_OK;
}
