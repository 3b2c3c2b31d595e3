// SPDX-License-Identifier: Apache-2.0
/* How a region's text reads value slots: see slots.h. Accessors stand in templates/region.cu.in. */
#include "codegen/slots.h"

#include "analysis/layout.h"
#include "codegen/constants.h"

/* Each is emitted when its name occurs. */
static const char *const functions[] = {"value", "value_cached", "value_vector"};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

int cb_reads_values(const char *sections) {
  for (int i = 0; i < FUNCTIONS; i++)
    if (cb_has_word(sections, functions[i])) return 1;
  return 0;
}

/* The array of value slots; NULL without one. */
static const struct cb_array *value_array(const struct cb_region *region) {
  for (int i = 0; i < region->arrays_count; i++)
    if (cb_holds_values(&region->arrays[i])) return &region->arrays[i];
  return NULL;
}

/* The table's numbers as constants. */
static const char *table_text(struct emitter *emitter, const struct cb_region *region) {
  enum { PER_LINE = 8 };
  struct cb_text text = {0};
  for (int i = 0; i < region->table_count; i++) {
    char literal[CB_LITERAL];
    cb_literal(literal, region->value_table[i], emitter->plan->sum_type);
    cb_text_add(&text, "%s%s%s", i % PER_LINE ? " " : "\n    ", literal, i + 1 == region->table_count ? "" : ",");
  }
  return keep(emitter, &text);
}

static const char *kind_of(const struct cb_region *region) {
  if (region->value_storage == CB_VALUES_EQUAL) return "equal";
  if (cb_type_is_complex(region->value_type)) return "complex";
  return region->value_type == CB_SPLIT ? "split" : "whole";
}

static int shares(const struct emitter *emitter, const struct cb_region *region) {
  return !is_family(emitter) && region->stream != CB_STREAM_STAYS && region->stream != CB_STREAM_LEAVES;
}

void cb_scope_stream(struct cb_scope *scope, const struct emitter *emitter, const struct cb_region *region,
                     enum cb_role role) {
  const int hinted = is_family(emitter) || shares(emitter, region);
  const int early = role == CB_ROLE_VALUES ? emitter->early_values : emitter->early;
  const char *constant = region->value_stream && role != CB_ROLE_VALUES ? ", kIndices" : ", kStream";
  const int stays = !hinted && region->stream == CB_STREAM_STAYS;
  cb_scope_optional(scope, "stream", early && hinted  ? "load_early_hinted"
                                     : early && stays ? "load_early"
                                     : hinted         ? "load_hinted"
                                                      : "load_stream");
  cb_scope_optional(scope, "hint", is_family(emitter) ? ", Stream{arrays.sizes->stream}" : hinted ? constant : "");
}

static void add_shares(struct cb_text *constants, const char *accessors, const struct cb_region *region) {
  const int stream = region->value_stream ? region->value_stream : region->stream;
  if (cb_has_word(accessors, "kStream"))
    cb_text_add(constants, "constexpr Stream kStream{0x%x};  // plan: %d sixteenths of %s stay in L2 for the next product\n",
                (unsigned)stream, (stream - CB_STREAM_SHARES) / CB_STREAM_SIXTEENTH,
                region->value_stream ? "the values" : "what is read once");
  if (cb_has_word(accessors, "kIndices"))
    cb_text_add(constants, "constexpr Stream kIndices{0x%x};  // plan: and all else that is read once\n",
                (unsigned)CB_STREAM_KEPT);
}

void cb_keep_stream(struct cb_text *constants, struct cb_text *accessors, struct cb_text *sections,
                    const struct emitter *emitter, const struct cb_region *region) {
  static const char *const kept[][2] = {{"load_stream", "load"},
                                        {"load_stream_vector", "load_cached_vector"},
                                        {"load_complex", "load_complex_cached"}};
  if (shares(emitter, region)) add_shares(constants, cb_text_string(accessors), region);
  if (is_family(emitter) || region->stream != CB_STREAM_STAYS) return;
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
    cb_word_instead(accessors, kept[i][0], kept[i][1]);
    cb_word_instead(sections, kept[i][0], kept[i][1]);
  }
}

enum cb_status cb_add_value_accessors(struct emitter *emitter, struct cb_text *text, const struct cb_region *region,
                                      const char *sections) {
  const int coded = region->value_storage == CB_VALUES_CODED;
  const struct cb_array *array = value_array(region);
  struct cb_scope scope = {0};
  enum cb_status s = CB_OK;
  if (!cb_reads_values(sections)) return CB_OK;
  cb_scope_optional(&scope, "number", number_type(emitter));
  cb_scope_optional(&scope, "index", place_for(emitter, region->value_slots));
  cb_scope_optional(&scope, "array", array ? array->name : "");
  cb_scope_stream(&scope, emitter, region, CB_ROLE_VALUES);
  if (array && array->role == CB_ROLE_MIXED) cb_scope_section(&scope, "mixed");
  cb_scope_section(&scope, kind_of(region));
  if (emitter->plan->conjugated) cb_scope_optional_section(&scope, "conjugated");
  if (emitter->heads) cb_scope_optional_section(&scope, "heads");
  if (coded) cb_scope_section(&scope, "coded");
  if (coded && region->table_baked) {
    cb_scope_section(&scope, "baked");
    cb_scope_placeholder(&scope, "table", table_text(emitter, region));
  }
  if (emitter->arena.failed) return cb_fail_memory(emitter->diag, "generated text", 0);
  if (coded) s = cb_expand_definition(text, "region", "value_table", &scope, emitter->diag);
  for (int i = 0; i < FUNCTIONS && !s; i++)
    if (cb_has_word(sections, functions[i])) s = cb_expand_definition(text, "region", functions[i], &scope, emitter->diag);
  return s;
}

void cb_add_equal_value(struct emitter *emitter, struct cb_text *constants, struct cb_text *sections,
                        const struct cb_region *region) {
  char literal[CB_LITERAL];
  if (region->value_storage != CB_VALUES_EQUAL || !cb_reads_values(cb_text_string(sections))) return;
  cb_literal(literal, region->value_table[0], emitter->plan->sum_type);
  cb_text_add(constants, "constexpr %s kValue = %s;  // plan: every value of the region\n", number_type(emitter), literal);
  for (int i = 0; i < FUNCTIONS; i++) cb_constant_instead(sections, functions[i], "kValue");
}

void cb_add_rests(struct cb_text *constants, const struct cb_text *accessors, const struct cb_region *region) {
  if (!cb_has_word(cb_text_string(accessors), "kRests")) return;
  cb_text_add(constants, "constexpr int64_t kRests = %lld;  // plan: heads of values, behind which their rests lie\n",
              (long long)region->value_slots);
}
