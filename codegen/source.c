// SPDX-License-Identifier: Apache-2.0
/* From a plan to CUDA text: see source.h. Text longer than two lines stands in templates; this file decides
 * which of their sections a plan needs and fills their placeholders. cb_source_emit at the end lists what a text has.
 */
#include "codegen/emitter.h"

#include "analysis/layout.h"
#include "base/embedded.h"
#include "base/memory.h"
#include "codegen/check.h"
#include "codegen/constants.h"
#include "codegen/outline.h"
#include "codegen/slots.h"
#include "codegen/statements/epilogue.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

int cb_source_embeds(const struct cb_blob *blob, enum cb_embed embed) {
  enum { AUTO_LIMIT = 1 << 20 };
  return blob && (embed == CB_EMBED_ALWAYS || (embed == CB_EMBED_AUTO && blob->length <= AUTO_LIMIT));
}

/* ---- device prelude */

enum cb_status cb_source_with_prelude(struct cb_text *text, const struct cb_text *body, struct cb_diag *diag) {
  if (body->failed) return cb_fail_memory(diag, "generated text", body->length);
  const enum cb_status s = cb_expand_used(text, "prelude", cb_text_string(body), diag);
  cb_text_add_string(text, cb_text_string(body));
  return s || !text->failed ? s : cb_fail_memory(diag, "generated text", body->length);
}

const char *cb_source_behind_prelude(const char *text) {
  const char *end = strstr(text, "\n// ---- end of the device prelude"), *line = end ? strchr(end + 1, '\n') : NULL;
  return line ? line + 1 : NULL;
}

/* ---- regions */

static const char *constants_text(struct emitter *emitter, const struct cb_region *region) {
  struct cb_text text = {0};
  for (int i = 0; i < region->constants_count; i++) {
    const struct cb_constant *constant = &region->constants[i];
    const char *type = constant->value > INT32_MAX || constant->value < INT32_MIN ? "int64_t" : "int";
    if (is_family(emitter) && constant->kind == CB_CONSTANT_SIZE) continue;
    const int64_t value = is_family(emitter) ? cb_family_value(region, constant) : constant->value;
    cb_text_add(&text, "constexpr %s %s = %lld;  // %s\n", type, constant->name, (long long)value, constant->origin);
  }
  return keep(emitter, &text);
}

static const char *members_text(struct emitter *emitter, const struct cb_region *region) {
  struct cb_text text = {0};
  if (is_family(emitter)) cb_family_add_pointers(&text, region);
  for (int i = 0; i < region->arrays_count; i++) {
    const struct cb_array *array = &region->arrays[i];
    if (array->storage != CB_STORED || is_family(emitter)) continue;
    cb_text_add(&text, "%s  const %s *%s;  // %lld: %s", text.length ? "\n" : "", cb_type_c_name(array->type),
                array->name, (long long)array->count, array->meaning);
  }
  if (text.length && text.bytes[text.length - 1] == '\n') text.bytes[--text.length] = 0;
  if (!text.length) cb_text_add_string(&text, "  // none: everything is arithmetic or a constant");
  return keep(emitter, &text);
}

static const char *affine_text(struct emitter *emitter, const struct cb_array *array) {
  const long long base = array->base, step = array->step;
  const char *i = is_wide(emitter, array->largest) ? "int64_t(i)" : "i";
  if (!step) return number(emitter, base);
  const char *product = step == 1 ? i : cb_arena_format(&emitter->arena, "%lld * %s", step, i);
  if (!base || !product) return product;
  return cb_arena_format(&emitter->arena, "%lld + %s", base, product);
}

static const char *table_text(struct emitter *emitter, const struct cb_array *array) {
  enum { PER_LINE = 16 };
  struct cb_text text = {0};
  for (int64_t i = 0; i < array->count; i++)
    cb_text_add(&text, "%s%llu%s", i % PER_LINE ? "" : "\n    ",
                (unsigned long long)array->baked[i], i + 1 == array->count ? "" : i % PER_LINE == PER_LINE - 1 ? "," : ", ");
  return keep(emitter, &text);
}

/* NAME_vector<n>(arrays, i): elements i … i + n - 1 at once. */
static const char *vector_name(struct emitter *emitter, const struct cb_array *array) {
  return cb_arena_format(&emitter->arena, "%s_vector", array->name);
}

/* Whether a family's kernel asks how the array is stored. */
static int is_index(const struct emitter *emitter, const struct cb_array *array) {
  return is_family(emitter) && cb_family_is_index(array);
}

/* `constant`: what all elements are; NULL: they differ, or a function gives it. */
static enum cb_status add_vector_accessor(struct emitter *emitter, struct cb_text *text, const struct cb_region *region,
                                          const struct cb_array *array, const char *constant) {
  struct cb_scope scope = {0};
  cb_scope_placeholder(&scope, "array", array->name);
  /* Templates hold vectors of int. */
  cb_scope_placeholder(&scope, "result", array->largest > INT32_MAX ? "int64_t" : "int");
  cb_scope_placeholder(&scope, "index", integer_for(emitter, array->count));
  const int stored = array->storage == CB_STORED && !is_index(emitter, array);
  if (stored) cb_scope_placeholder(&scope, "element", cb_type_c_name(array->type));
  if (stored) cb_scope_stream(&scope, emitter, region, array->role);
  if (constant) cb_scope_placeholder(&scope, "constant", constant);
  const char *accessor = stored     ? "accessor_vector_stored"
                         : constant ? "accessor_vector_constant"
                                    : "accessor_vector";
  const enum cb_status s = cb_expand_definition(text, "region", accessor, &scope, emitter->diag);
  return s ? s : cb_scope_check(&scope, array->name, emitter->diag);
}

static enum cb_status add_accessor(struct emitter *emitter, struct cb_text *text, const struct cb_region *region,
                                   const struct cb_array *array) {
  static const char *const accessors[] = {
      [CB_STORED] = "accessor_stored", [CB_AFFINE] = "accessor_affine", [CB_BAKED] = "accessor_baked"};
  struct cb_scope scope = {0};
  cb_scope_placeholder(&scope, "array", array->name);
  cb_scope_placeholder(&scope, "result", integer_for(emitter, array->largest));
  cb_scope_placeholder(&scope, "index", (array->by_slot ? place_for : integer_for)(emitter, array->count));
  if (array->storage != CB_STORED) cb_scope_placeholder(&scope, "meaning", array->meaning);
  else if (array->streamed) cb_scope_stream(&scope, emitter, region, array->role);
  else {
    cb_scope_placeholder(&scope, "stream", emitter->early && array->by_slot ? "load_early" : "load");
    cb_scope_placeholder(&scope, "hint", "");
  }
  if (array->storage == CB_AFFINE) {
    cb_scope_placeholder(&scope, "index_name", array->step ? " i" : "");
    cb_scope_placeholder(&scope, "expression", affine_text(emitter, array));
  }
  if (array->storage == CB_BAKED) {
    cb_scope_placeholder(&scope, "element", cb_type_c_name(array->type));
    cb_scope_placeholder(&scope, "contents", table_text(emitter, array));
  }
  if (emitter->arena.failed) return cb_fail_memory(emitter->diag, "generated text", 0);
  const enum cb_status s = cb_expand_definition(text, "region", accessors[array->storage], &scope, emitter->diag);
  return s ? s : cb_scope_check(&scope, array->name, emitter->diag);
}

static enum cb_status add_index_accessor(struct emitter *emitter, struct cb_text *text, const struct cb_array *array) {
  struct cb_scope scope = {0};
  cb_scope_placeholder(&scope, "array", array->name);
  const enum cb_status s = cb_expand_definition(text, "region", "accessor_index", &scope, emitter->diag);
  return s ? s : cb_scope_check(&scope, array->name, emitter->diag);
}

/* first_column → kFirstColumn */
static const char *constant_name(struct emitter *emitter, const char *array) {
  struct cb_text name = {0};
  cb_text_add_string(&name, "k");
  for (const char *at = array; *at; at++)
    if (*at != '_') cb_text_add(&name, "%c", at == array || at[-1] == '_' ? toupper((unsigned char)*at) : *at);
  return keep(emitter, &name);
}

/* The text of one region, in parts. */
struct region_text {
  const struct cb_region *region;
  struct cb_text constants, accessors, sections; /* sections: of the layout's template */
};

static int has_constant(const struct cb_region *region, const char *name) {
  for (int i = 0; i < region->constants_count; i++)
    if (!strcmp(region->constants[i].name, name)) return 1;
  return 0;
}

/* Where all elements are alike and the sections can do without the accessor, a constant is in its place. Returns its
 * name, or NULL. */
static const char *make_constant(struct emitter *emitter, struct region_text *text, const struct cb_array *array) {
  if (array->storage != CB_AFFINE || array->step || is_family(emitter)) return NULL;
  const char *name = constant_name(emitter, array->name);
  if (has_constant(text->region, name) || !cb_constant_instead(&text->sections, array->name, name)) return NULL;
  cb_text_add(&text->constants, "constexpr %s %s = %lld;  // plan, always: %s\n",
              integer_for(emitter, array->largest), name, (long long)array->base, array->meaning);
  return name;
}

/* The accessor of single elements, that of vectors, or both, as the sections ask for. */
static enum cb_status add_index_accessors(struct emitter *emitter, struct region_text *text,
                                          const struct cb_array *array) {
  const char *vector = vector_name(emitter, array), *constant = make_constant(emitter, text, array);
  const char *sections = cb_text_string(&text->sections);
  if (!vector) return cb_fail_memory(emitter->diag, "generated text", 0);
  const int index = is_index(emitter, array);
  const int vectors = cb_has_word(sections, vector), stored = array->storage == CB_STORED && !index;
  enum cb_status s = CB_OK;
  if (!constant && (cb_has_word(sections, array->name) || (vectors && !stored)))
    s = index ? add_index_accessor(emitter, &text->accessors, array)
              : add_accessor(emitter, &text->accessors, text->region, array);
  if (!s && vectors) s = add_vector_accessor(emitter, &text->accessors, text->region, array, constant);
  return s;
}

/* The function that takes a region's row sums: those that write y, or that add to sums which a last launch commits. */
static const char *commit_name(const struct cb_plan *plan, enum cb_commit commit) {
  static const char *const to_y[] = {
      [CB_COMMIT_FINAL] = "commit",         [CB_COMMIT_OWN] = "commit", [CB_COMMIT_ADD] = "commit_more",
      [CB_COMMIT_ATOMIC] = "commit_atomic", [CB_COMMIT_KEEP] = "keep",  [CB_COMMIT_KEPT] = "commit_kept",
      [CB_COMMIT_KEPT_KEEP] = "keep_more",  [CB_COMMIT_KEPT_ADD] = "commit_kept"};
  static const char *const to_sums[] = {
      [CB_COMMIT_FINAL] = "set_sum", [CB_COMMIT_OWN] = "set_sum", [CB_COMMIT_ADD] = "add_sum",
      [CB_COMMIT_ATOMIC] = "add_sum_atomic"};
  return plan->row_sums && commit < CB_COMMIT_KEEP ? to_sums[commit] : to_y[commit];
}

/* Where the region's carry slots begin. */
static void add_places(struct emitter *emitter, const struct cb_region *region, struct cb_scope *scope) {
  const int family = is_family(emitter);
  cb_scope_optional(scope, "first_carry_sum",
                    family ? "arrays.sizes->first_carry_sum" : number(emitter, region->first_carry_sum));
  cb_scope_optional(scope, "first_carry_counter",
                    family ? "arrays.sizes->first_carry_counter" : number(emitter, region->first_carry_counter));
}

/* Those that the plan asks for, or that its family has. */
static void add_sections(struct emitter *emitter, const struct cb_region *region, struct cb_scope *scope) {
  const struct cb_family_parts *family = &region->family;
  for (int i = 0; i < region->sections_count; i++)
    if (!is_family(emitter) || cb_family_has_section(region, region->sections[i]))
      cb_scope_section(scope, region->sections[i]);
  for (int i = 0; i < family->with_count && is_family(emitter); i++) cb_scope_optional_section(scope, family->with[i]);
  if (is_family(emitter)) cb_scope_optional_section(scope, "family"); /* functions that need sizes take arrays */
}

/* The launch that multiplies with the region. */
static const struct cb_launch *launch_of(const struct cb_plan *plan, const struct cb_region *region) {
  const int number_of_region = (int)(region - plan->regions);
  const struct cb_launch *launch = plan->launches;
  while (launch->prepares || launch->body || launch->first_region > number_of_region ||
         launch->first_region + launch->regions <= number_of_region)
    launch++;
  return launch;
}

/* Whether the text does not know when the kernel behind may start: a size says it. */
static int asks_for_next(const struct emitter *emitter, const struct cb_region *region) {
  return is_family(emitter) && !region->next_is_structure;
}

/* Whether its text waits for the kernel before, and lets the one behind start. */
static int waits_late(const struct emitter *emitter, const struct cb_region *region) {
  if (region->late != CB_LATE_ALONE) return region->late == CB_LATE_ALWAYS;
  const struct cb_launch *launch = launch_of(emitter->plan, region);
  return !emitter->share && launch->regions == 1 && (asks_for_next(emitter, region) || region->next != CB_NEXT_AT_END);
}

/* The array of value slots in memory; NULL: there is none. */
static const struct cb_array *stored_values(const struct cb_region *region) {
  for (int a = 0; a < region->arrays_count; a++)
    if (cb_holds_values(&region->arrays[a]) && region->arrays[a].storage == CB_STORED) return &region->arrays[a];
  return NULL;
}

/* Values are read through the read-only path, whose loads a compiler may move up: not beyond the wait. `arrays`: the
 * region's, by their name in the text. */
static void add_late(struct cb_text *text, const char *arrays, const struct cb_array *values) {
  if (values) cb_text_add(text, "  %s.%s = after_wait(%s.%s);\n", arrays, values->name, arrays, values->name);
}

/* Lets the kernel behind start, once: a second time took 0.2 us, though it says nothing new. */
static void add_start(struct emitter *emitter, const struct cb_region *region, struct cb_text *text) {
  if (region->late != CB_LATE_ALONE) return;
  if (asks_for_next(emitter, region)) cb_text_add(text, "  if (next_start == %d) start_next();\n", CB_NEXT_BEHIND);
  else if (region->next == CB_NEXT_BEHIND) cb_text_add_string(text, "  start_next();\n");
}

/* Whether values, which are new long before a product (cb_device_separate), are loaded before the wait: where the
 * kernel behind starts at once, and so waits longest. */
static int loads_ahead(const struct emitter *emitter, const struct cb_region *region) {
  if (asks_for_next(emitter, region)) return region->may_start_next;
  return region->next == CB_NEXT_AT_ONCE && region->value_storage != CB_VALUES_CODED;
}

/* What stands behind the wait of a region whose own text waits. */
static const char *behind_wait(struct emitter *emitter, const struct cb_region *region) {
  struct cb_text text = {0};
  add_start(emitter, region, &text);
  if (!loads_ahead(emitter, region)) add_late(&text, "arrays", stored_values(region));
  if (text.length) text.bytes[--text.length] = 0; /* the template ends the line */
  return keep(emitter, &text);
}

/* Expands the region's sections with the region's values and those that every region has. */
static enum cb_status expand_sections(struct emitter *emitter, const struct cb_region *region, struct cb_text *text) {
  struct cb_scope scope = {0};
  cb_scope_optional(&scope, "commit", commit_name(emitter->plan, region->commit));
  cb_scope_optional(&scope, "number", number_type(emitter));
  add_places(emitter, region, &scope);
  add_semiring(emitter, &scope);
  for (int i = 0; i < region->placeholders_count; i++) /* tables may be data, in a family */
    (is_family(emitter) ? cb_scope_optional : cb_scope_placeholder)(&scope, region->placeholders[i].name,
                                                                    region->placeholders[i].text);
  add_sections(emitter, region, &scope);
  if (cb_plan_rounds_y(emitter->plan)) cb_scope_optional_section(&scope, "rounds_y");
  if (emitter->share) cb_scope_optional_section(&scope, "placed"); /* entries of x are where its vectors lie */
  if (emitter->share && region->loads_together) cb_scope_section(&scope, "together");
  if (waits_late(emitter, region)) {
    cb_scope_optional_section(&scope, "late");
    if (loads_ahead(emitter, region)) cb_scope_optional_section(&scope, "ahead");
    if (!loads_ahead(emitter, region) || asks_for_next(emitter, region)) cb_scope_optional_section(&scope, "waiting");
    if (loads_ahead(emitter, region) && asks_for_next(emitter, region)) cb_scope_optional_section(&scope, "either");
    cb_scope_optional(&scope, "at_once", number(emitter, CB_NEXT_AT_ONCE));
    if (*behind_wait(emitter, region)) cb_scope_optional_section(&scope, "told");
    cb_scope_optional(&scope, "behind_wait", behind_wait(emitter, region));
  }
  if (region->value_storage == CB_VALUES_PLAIN && region->value_type != emitter->plan->sum_type)
    cb_scope_optional_section(&scope, "converted"); /* a value is not its slot's bits */
  if (has_several_sums(emitter)) cb_scope_optional_section(&scope, "several");
  if (is_shared_by_threads(emitter) && !emitter->share->sharing) cb_scope_optional_section(&scope, "parted");
  if (emitter->share && emitter->share->sharing == CB_SHARING_TURNS) cb_scope_section(&scope, "turns");
  if (emitter->share && emitter->share->sharing == CB_SHARING_WARPS) cb_scope_section(&scope, "meeting");
  if (emitter->share && emitter->share->sharing == CB_SHARING_TILES) cb_scope_section(&scope, "tensor");
  if (emitter->arena.failed) return cb_fail_memory(emitter->diag, "generated text", 0);
  const enum cb_status s = cb_expand(text, region->layout, &scope, emitter->diag);
  return s ? s : cb_scope_check(&scope, region->name, emitter->diag);
}

/* Also when there is no memory to find out: the arena has failed then, which ends generation later. */
static int is_used(struct emitter *emitter, const struct cb_array *array, const char *sections) {
  const char *vector = vector_name(emitter, array);
  return !vector || cb_has_word(sections, array->name) || cb_has_word(sections, vector) ||
         (cb_gives_values(array) && cb_reads_values(sections));
}

/* Whatever the plan gives a region must occur in its text. */
static enum cb_status check_use(struct emitter *emitter, const struct cb_region *region, const char *sections) {
  struct cb_diag *diag = emitter->diag;
  for (int i = 0; i < region->constants_count; i++)
    if (!cb_has_word(sections, region->constants[i].name))
      return cb_fail(diag, CB_ERR_INTERNAL, "region '%s' does not use its constant '%s'", region->name,
                     region->constants[i].name);
  for (int i = 0; i < region->arrays_count; i++)
    if (!is_used(emitter, &region->arrays[i], sections))
      return cb_fail(diag, CB_ERR_INTERNAL, "region '%s' does not use its array '%s'", region->name,
                     region->arrays[i].name);
  return CB_OK;
}

static const char *facts_text(struct emitter *emitter, const struct cb_region *region) {
  struct cb_text text = {0};
  for (int i = 0; i < region->facts_count; i++)
    cb_text_add(&text, "%s%s %s", i ? ", " : "", region->facts[i].key, region->facts[i].value);
  return keep(emitter, &text);
}

/* How the sums of rows go from a region to the next one in turn: the first region has room for them, each adds its
 * own, and the last commits them. */
static enum cb_status add_keeping(struct emitter *emitter, struct cb_text *text, const struct cb_region *region) {
  static const char *const definitions[] = {[CB_COMMIT_KEEP] = "keep",
                                            [CB_COMMIT_KEPT] = "commit_kept",
                                            [CB_COMMIT_KEPT_KEEP] = "keep_more",
                                            [CB_COMMIT_KEPT_ADD] = "commit_kept"};
  struct cb_scope scope = {0};
  if (region->commit < CB_COMMIT_KEEP) return CB_OK;
  const struct cb_launch *launch = launch_of(emitter->plan, region);
  cb_scope_placeholder(&scope, "block_rows", number(emitter, launch->block_rows));
  const enum cb_commit without = region->commit == CB_COMMIT_KEPT_ADD ? CB_COMMIT_ADD : CB_COMMIT_FINAL;
  cb_scope_optional(&scope, "before", emitter->plan->regions[launch->first_region].name);
  cb_scope_optional(&scope, "commit", commit_name(emitter->plan, without));
  if (launch->regions > 2) cb_scope_section(&scope, "chain");
  if (region->commit == CB_COMMIT_KEPT_ADD) cb_scope_section(&scope, "kept_more");
  if (emitter->arena.failed) return cb_fail_memory(emitter->diag, "generated text", 0);
  return cb_expand_definition(text, "region", definitions[region->commit], &scope, emitter->diag);
}

/* Types that the text uses. */
static void add_types(struct emitter *emitter, struct region_text *text) {
  const struct cb_region *region = text->region;
  const char *sections = cb_text_string(&text->sections);
  int64_t longest = region->value_slots;
  for (int i = 0; i < region->arrays_count; i++)
    if (region->arrays[i].count > longest) longest = region->arrays[i].count;
  if (cb_has_word(sections, "stored_t") || cb_has_word(cb_text_string(&text->accessors), "stored_t"))
    cb_text_add(&text->constants, "using stored_t = %s;  // a value slot\n", cb_type_c_name(region->value_type));
  if (!cb_has_word(sections, "index_t")) return;
  if (emitter->early && !is_wide(emitter, longest)) cb_text_add_string(&text->constants, CB_EARLY_INDEX);
  else cb_text_add(&text->constants, "using index_t = %s" CB_ANY_INDEX, integer_for(emitter, longest));
}

static enum cb_status add_accessors(struct emitter *emitter, struct region_text *text) {
  const struct cb_region *region = text->region;
  const struct cb_array *arrays[CB_FAMILY_ARRAYS];
  const int count = is_family(emitter) ? cb_family_arrays(region, arrays) : region->arrays_count;
  enum cb_status s = CB_OK;
  for (int i = 0; i < count && !s; i++) {
    const struct cb_array *array = is_family(emitter) ? arrays[i] : &region->arrays[i];
    if (array->role == CB_ROLE_INDEX) s = add_index_accessors(emitter, text, array);
  }
  return s;
}

/* Where threads share vectors, a thread works as another one does, with one vector. */
static void share_threads(const struct emitter *emitter, struct cb_text *text, int threads) {
  char own[48];
  if (!is_shared_by_threads(emitter) || emitter->share->sharing) return;
  snprintf(own, sizeof own, "own_thread<%d>()", threads);
  cb_word_instead(text, "threadIdx.x", own);
}

static enum cb_status fill_region(struct emitter *emitter, struct region_text *text) {
  const struct cb_region *region = text->region;
  emitter->early = region->loads_early && waits_late(emitter, region) && !asks_for_next(emitter, region);
  emitter->early_values = emitter->early && loads_ahead(emitter, region);
  enum cb_status s = expand_sections(emitter, region, &text->sections);
  if (!s) share_threads(emitter, &text->sections, launch_of(emitter->plan, region)->threads);
  if (!s) s = check_use(emitter, region, cb_text_string(&text->sections));
  if (!s) cb_add_equal_value(emitter, &text->constants, &text->sections, region);
  if (!s) s = add_accessors(emitter, text);
  if (!s) s = cb_add_value_accessors(emitter, &text->accessors, region, cb_text_string(&text->sections));
  if (!s) s = add_keeping(emitter, &text->accessors, region);
  if (!s) add_types(emitter, text);
  if (!s) cb_add_rests(&text->constants, &text->accessors, region);
  if (!s) cb_keep_stream(&text->constants, &text->accessors, &text->sections, emitter, region);
  if (!s && is_family(emitter)) cb_family_read_sizes(&text->sections, region);
  cb_text_add_string(&text->constants, constants_text(emitter, region));
  return s;
}

static const char *sizes_text(struct emitter *emitter, const struct cb_region *region) {
  struct cb_text text = {0};
  cb_family_add_sizes(&text, region);
  if (text.length) text.bytes[--text.length] = 0;
  return keep(emitter, &text);
}

static enum cb_status emit_region(struct emitter *emitter, const struct cb_region *region) {
  struct region_text text = {.region = region};
  struct cb_scope scope = {0};
  enum cb_status s = fill_region(emitter, &text);
  cb_scope_placeholder(&scope, "region", region->name);
  cb_scope_placeholder(&scope, "summary", cb_layout_find(region->layout)->summary);
  if (is_family(emitter)) {
    cb_scope_section(&scope, "family");
    cb_scope_placeholder(&scope, "sizes", sizes_text(emitter, region));
  } else {
    cb_scope_placeholder(&scope, "facts", facts_text(emitter, region));
  }
  cb_scope_placeholder(&scope, "constants", keep(emitter, &text.constants));
  cb_scope_placeholder(&scope, "array_members", members_text(emitter, region));
  if (text.accessors.length) cb_text_add_string(&text.accessors, "\n");
  cb_scope_placeholder(&scope, "accessors", keep(emitter, &text.accessors));
  cb_scope_placeholder(&scope, "sections", keep(emitter, &text.sections));
  if (!s && emitter->arena.failed) s = cb_fail_memory(emitter->diag, "generated text", 0);
  if (!s) s = cb_expand(&emitter->regions, "region", &scope, emitter->diag);
  return s ? s : cb_scope_check(&scope, region->name, emitter->diag);
}

/* ---- kernels */

/* Appends ", ITEM" or, at first, "ITEM". */
static void add_item(struct cb_text *list, const char *item) {
  cb_text_add(list, "%s%s", list->length ? ", " : "", item);
}

/* The one that `launch` reads; NULL: none. */
static const struct cb_array *values_read(const struct cb_launch *launch, const struct cb_region *region) {
  return launch->prepares ? NULL : stored_values(region);
}

/* The region of the launch that waits for the kernel before; NULL: the launch's kernel does. */
static const struct cb_region *late_region(const struct emitter *emitter, const struct cb_launch *launch) {
  const struct cb_region *region = &emitter->plan->regions[launch->first_region];
  return !launch->body && launch->regions == 1 && waits_late(emitter, region) ? region : NULL;
}

static void add_late_values(struct emitter *emitter, const struct cb_launch *launch, struct cb_text *text) {
  for (int i = 0; i < launch->regions && !late_region(emitter, launch); i++) {
    const struct cb_region *region = &emitter->plan->regions[launch->first_region + i];
    add_late(text, cb_arena_format(&emitter->arena, "%s_arrays", region->name), values_read(launch, region));
  }
}

/* A family's kernel gets a region's arrays in parts. */
static void add_arrays(struct emitter *emitter, const struct cb_launch *launch, struct cb_text *text) {
  for (int i = 0; i < launch->regions && is_family(emitter); i++) {
    const struct cb_region *region = &emitter->plan->regions[launch->first_region + i];
    const char *name = region->name;
    cb_text_add(text, "  %s%s::Arrays %s_arrays = {{", values_read(launch, region) ? "" : "const ", name, name);
    if (gets_arrays(emitter, region)) cb_text_add(text, "%s_pointers", name);
    cb_text_add(text, "}, &%s_sizes};\n", name);
  }
}

/* The thread block behind a region's last one, and its first one, in its launch. */
static const char *end_block(struct emitter *emitter, const struct cb_region *region) {
  if (is_family(emitter))
    return cb_arena_format(&emitter->arena, "%s_sizes.first_block + %s_sizes.blocks", region->name, region->name);
  return number(emitter, region->first_block + region->blocks);
}
static const char *first_block(struct emitter *emitter, const struct cb_region *region) {
  if (is_family(emitter)) return cb_arena_format(&emitter->arena, "%s_sizes.first_block", region->name);
  return number(emitter, region->first_block);
}

/* Regions beside each other: a later one has the thread blocks before. */
static const char *region_calls(struct emitter *emitter, const struct cb_launch *launch) {
  struct cb_text text = {0};
  add_arrays(emitter, launch, &text);
  add_late_values(emitter, launch, &text);
  for (int i = launch->regions - 1; i >= 0; i--) {
    const struct cb_region *region = &emitter->plan->regions[launch->first_region + i];
    const int first = i + 1 == launch->regions, last = !i;
    if (!last)
      cb_text_add(&text, "  %sif (%sblockIdx.x < %s)\n  ", first ? "" : "else ", is_family(emitter) ? "(int)" : "",
                  end_block(emitter, region));
    else if (!first) cb_text_add_string(&text, "  else\n  ");
    cb_text_add(&text, "  %s::%s(", region->name,
                launch->finishes ? "finish" : launch->prepares ? "prepare" : "multiply");
    if (stored_arrays(region) || is_family(emitter)) cb_text_add(&text, "%s_arrays", region->name);
    else cb_text_add(&text, "%s::Arrays{}", region->name);
    cb_text_add_string(&text, ", vectors, (int)blockIdx.x");
    if (is_family(emitter) ? launch->regions > 1 : region->first_block > 0)
      cb_text_add(&text, " - %s", first_block(emitter, region));
    cb_text_add(&text, ");%s", last ? "" : "\n");
  }
  return keep(emitter, &text);
}

/* Regions one after another in each thread block, several times where their thread blocks have fewer rows. */
static const char *calls_in_turn(struct emitter *emitter, const struct cb_launch *launch) {
  struct cb_text text = {0};
  add_arrays(emitter, launch, &text);
  add_late_values(emitter, launch, &text);
  for (int i = 0; i < launch->regions; i++) {
    const struct cb_region *region = &emitter->plan->regions[launch->first_region + i];
    const int64_t times = launch->block_rows / region->block_rows;
    const char *arrays = cb_arena_format(
        &emitter->arena, stored_arrays(region) || is_family(emitter) ? "%s_arrays" : "%s::Arrays{}", region->name);
    struct cb_scope scope = {0};
    /* A row that the same thread takes from one to the next needs no barrier. */
    if (i && (!region->row_threads || region->row_threads != region[-1].row_threads))
      cb_text_add_string(&text, "  __syncthreads();\n");
    cb_scope_placeholder(&scope, "region", region->name);
    cb_scope_placeholder(&scope, "arrays", arrays);
    cb_scope_placeholder(&scope, "times", number(emitter, times));
    cb_scope_placeholder(&scope, "blocks",
                         is_family(emitter) ? cb_arena_format(&emitter->arena, "%s_sizes.blocks", region->name)
                                            : number(emitter, region->blocks));
    if (emitter->arena.failed) break;
    if (times == 1)
      cb_text_add(&text, "  %s::multiply(%s, vectors, (int)blockIdx.x);\n", region->name, arrays);
    else if (cb_expand_definition(&text, "kernel", "in_turn", &scope, emitter->diag))
      emitter->arena.failed = 1;
  }
  if (text.length) text.bytes[--text.length] = 0; /* the kernel's template ends the line */
  return keep(emitter, &text);
}

static const char *first_row_sum(struct emitter *emitter) {
  return is_family(emitter) ? "vectors.first_row_sum" : number(emitter, emitter->plan->first_row_sum);
}

static const char *scale_body(struct emitter *emitter, const char *body) {
  struct cb_text text = {0};
  struct cb_scope scope = {0};
  if (has_scalars(emitter)) cb_scope_section(&scope, "axpby");
  cb_scope_optional(&scope, "first_row_sum", first_row_sum(emitter));
  if (!emitter->arena.failed && cb_expand_definition(&text, "kernel", body, &scope, emitter->diag))
    emitter->arena.failed = 1;
  if (text.length) text.bytes[--text.length] = 0; /* the kernel's template ends the line */
  return keep(emitter, &text);
}

static const char *body_text(struct emitter *emitter, const struct cb_launch *launch) {
  if (!strcmp(launch->body, "reduce_terms")) return cb_epilogue_reduces(emitter, launch);
  return scale_body(emitter, launch->body);
}

/* Where its warps' clocks are: the launches before it have as many before. */
static void add_clocks(struct emitter *emitter, struct cb_scope *scope, int number_of_launch) {
  if (!emitter->clocked) return;
  cb_scope_section(scope, "clocked");
  cb_scope_placeholder(scope, "first_clock", number(emitter, cb_source_clocks(emitter->plan, number_of_launch)));
}

static void add_family_parameters(struct emitter *emitter, const struct cb_region *region, struct cb_text *parameters) {
  const char *name = region->name;
  add_item(parameters, cb_arena_format(&emitter->arena, "const __grid_constant__ %s::Sizes %s_sizes", name, name));
  if (gets_arrays(emitter, region))
    add_item(parameters, cb_arena_format(&emitter->arena, "const %s::Pointers %s_pointers", name, name));
}

static void add_suffix(char *kernel, size_t size, const char *suffix) {
  const size_t length = strlen(kernel);
  snprintf(kernel + length, size - length, "_%s", suffix);
}

static void add_vector_suffix(const struct emitter *emitter, char *kernel, size_t size) {
  add_suffix(kernel, size, cb_vector_kernel_name((enum cb_vector_kernel)(emitter->share - emitter->plan->shares)));
}

/* A launch whose region waits for the kernel before. One of few thread blocks lets the one behind start at once: what
 * takes longest of short kernels is that they start. */
static void begin_late(struct emitter *emitter, const struct cb_launch *launch, struct cb_scope *scope) {
  const struct cb_region *region = late_region(emitter, launch);
  struct cb_text text = {0};
  if (!region) return;
  cb_scope_section(scope, "late");
  if (region->late != CB_LATE_ALONE || launch->prepares) return;
  if (asks_for_next(emitter, region) && region->may_start_next)
    cb_text_add(&text, "  if (%s_sizes.next_start == %d) start_next();\n", region->name, CB_NEXT_AT_ONCE);
  if (asks_for_next(emitter, region))
    cb_text_add(&text, "  if (%s_sizes.next_start == %d) wait_for_previous();", region->name, CB_NEXT_AT_END);
  else if (region->next == CB_NEXT_AT_ONCE) cb_text_add_string(&text, "  start_next();");
  if (!text.length && !text.failed) return;
  cb_scope_section(scope, "early");
  cb_scope_placeholder(scope, "begin", keep(emitter, &text));
}

static enum cb_status emit_kernel(struct emitter *emitter, int number_of_launch) {
  const struct cb_plan *plan = emitter->plan;
  const struct cb_launch *launch = &plan->launches[number_of_launch];
  struct cb_text parameters = {0}, vectors = {0};
  struct cb_scope scope = {0};
  char kernel[96];
  cb_source_kernel(plan, emitter->label, number_of_launch, kernel, sizeof kernel);
  if (emitter->share) add_vector_suffix(emitter, kernel, sizeof kernel);
  if (emitter->heads) add_suffix(kernel, sizeof kernel, "heads");
  for (int i = 0; i < launch->regions && !launch->body; i++) {
    const struct cb_region *region = &plan->regions[launch->first_region + i];
    if (is_family(emitter)) add_family_parameters(emitter, region, &parameters);
    if (!stored_arrays(region) || is_family(emitter)) continue;
    add_item(&parameters, cb_arena_format(&emitter->arena, "%s%s::Arrays %s_arrays", values_read(launch, region) ? "" : "const ",
                                          region->name, region->name));
  }
  if (is_family(emitter)) add_item(&parameters, "const Shape shape");
  add_item(&parameters, "const vector_t *x, vector_t *y");
  add_item(&vectors, emitter->share ? "place(x, y, columns)" : "x, y");
  if (has_scalars(emitter)) {
    add_item(&parameters, emitter->share ? "number_t alpha, number_t beta" : "sum_t alpha, sum_t beta");
    add_item(&vectors, "alpha, beta");
  }
  if (has_carry(emitter)) {
    add_item(&parameters, "sum_t *carry_sums, uint32_t *carry_counters");
    add_item(&vectors, "carry_sums, carry_counters");
  }
  if (is_family(emitter)) add_item(&vectors, "shape.rows, shape.cols, shape.first_row_sum");
  cb_epilogue_parameters(emitter, &parameters, &vectors);
  if (emitter->share) add_item(&parameters, "const Columns columns");
  if (emitter->clocked) add_item(&parameters, "WarpClock *clocks");
  const char *threads = size_name(emitter, "kThreads", number_of_launch);
  cb_scope_placeholder(&scope, "threads_name", threads);
  cb_scope_placeholder(&scope, "threads", number(emitter, launch->threads));
  cb_scope_placeholder(&scope, "bounds", cb_launch_bounds(emitter, launch, threads));
  add_clocks(emitter, &scope, number_of_launch);
  begin_late(emitter, launch, &scope);
  cb_scope_placeholder(&scope, "kernel", kernel);
  cb_scope_placeholder(&scope, "parameters", keep(emitter, &parameters));
  cb_scope_placeholder(&scope, "vectors", keep(emitter, &vectors));
  cb_scope_placeholder(&scope, "body",
                       launch->body         ? body_text(emitter, launch)
                       : launch->block_rows ? calls_in_turn(emitter, launch)
                                            : region_calls(emitter, launch));
  if (emitter->arena.failed) return cb_fail_memory(emitter->diag, "generated text", 0);
  const enum cb_status s = cb_expand(&emitter->kernels, "kernel", &scope, emitter->diag);
  return s ? s : cb_scope_check(&scope, kernel, emitter->diag);
}

/* ---- what stands above the regions */

/* Functions that regions and kernels call, each emitted when its name occurs there, or in one that is emitted. */
static const char *const common_functions[] = {
    "load_x",         "load_factor", "commit", "commit_more", "commit_atomic", "set_sum", "add_sum", "add_sum_atomic",
    "last_to_arrive", "zero",   "product",     "add_product",   "scale",   "add_scaled",   "add",     "total",   "clear",
    "is_finite",      "warp_lane",   "shuffle",     "shuffle_xor", "shuffle_warp", "shuffle_up", "load_l2", "store_l2"};
enum { COMMON_FUNCTIONS = sizeof common_functions / sizeof *common_functions };

static const char *global_constants(struct emitter *emitter) {
  const struct {
    const char *name, *origin;
    int64_t value;
  } constants[] = {
      {"kRows", "matrix: rows, the length of y", emitter->plan->rows},
      {"kCols", "matrix: columns, the length of x", emitter->plan->cols},
  };
  struct cb_text text = {0};
  if (is_family(emitter)) return "";
  for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
    if (cb_has_word(cb_text_string(&emitter->regions), constants[i].name) ||
        cb_has_word(cb_text_string(&emitter->kernels), constants[i].name))
      cb_text_add(&text, "constexpr int %s = %lld;  // %s\n", constants[i].name, (long long)constants[i].value,
                  constants[i].origin);
  return keep(emitter, &text);
}

/* Chooses what `text` uses. Returns whether that makes more. */
static int choose_common(int chosen[COMMON_FUNCTIONS], const char *text) {
  int used[COMMON_FUNCTIONS], more = 0;
  cb_has_words(text, common_functions, COMMON_FUNCTIONS, used);
  for (int i = 0; i < COMMON_FUNCTIONS; i++) {
    more |= used[i] && !chosen[i];
    chosen[i] |= used[i];
  }
  return more;
}

/* The order of thread blocks, where a region asks for one and there are enough of them. */
static void add_dealing(struct emitter *emitter, struct cb_scope *scope) {
  const struct cb_plan *plan = emitter->plan;
  const int64_t multiprocessors = plan->target.multiprocessors;
  if (plan->regions_count != 1 || plan->launches_count != 1) return;
  const int64_t round = plan->regions[0].dealt * multiprocessors;
  const int64_t blocks = plan->regions[0].blocks * cb_share_blocks(emitter->share);
  if (cb_share_blocks(emitter->share) == 1 || !round || blocks < round) return;
  cb_scope_section(scope, "dealt");
  cb_scope_placeholder(scope, "dealt_blocks", number(emitter, plan->regions[0].dealt));
  cb_scope_placeholder(scope, "multiprocessors", number(emitter, multiprocessors));
  cb_scope_placeholder(scope, "in_rounds", number(emitter, blocks / round * round));
}

/* How a kernel for several vectors deals them out. */
static void add_share(struct emitter *emitter, struct cb_scope *scope) {
  const struct cb_vector_share *share = emitter->share;
  cb_scope_placeholder(scope, "count", number(emitter, share->each * share->parts));
  cb_scope_placeholder(scope, "each", number(emitter, share->each));
  cb_scope_optional(scope, "parts", number(emitter, share->parts));
  if (has_several_sums(emitter)) cb_scope_section(scope, "each");
  if (has_several_sums(emitter) && share->each == 1) cb_scope_section(scope, "one_alone");
  if (share->parts > 1) cb_scope_section(scope, "parts");
  if (cb_share_blocks(share) > 1) cb_scope_section(scope, "own_threads");
  if (share->sharing == CB_SHARING_WARPS) cb_scope_section(scope, "meeting");
  if (share->sharing == CB_SHARING_TILES && share->each == 1) cb_scope_section(scope, "halves");
  add_dealing(emitter, scope);
  if (share == &emitter->plan->shares[CB_VECTORS_STRIDED]) return;
  cb_scope_section(scope, "packed");
  if (share == &emitter->plan->shares[CB_VECTORS_COPIED])
    cb_scope_section(scope, share->y_too ? "laid_out" : "apart");
  cb_scope_placeholder(scope, "piece", number(emitter, cb_share_piece(share, emitter->plan->vector_type)));
}

static enum cb_status expand_vectors(struct emitter *emitter, const int chosen[COMMON_FUNCTIONS]) {
  const struct cb_plan *plan = emitter->plan;
  struct cb_scope scope = {0};
  cb_scope_placeholder(&scope, "vector_type", cb_type_entry_name(plan->vector_type));
  cb_scope_placeholder(&scope, emitter->share ? "number_type" : "sum_type", cb_type_c_name(plan->sum_type));
  cb_scope_placeholder(&scope, "global_constants", global_constants(emitter));
  if (emitter->share) add_share(emitter, &scope);
  cb_scope_optional(&scope, "rows", number(emitter, plan->rows));
  cb_scope_optional(&scope, "cols", number(emitter, plan->cols));
  add_form(emitter, &scope);
  if (is_family(emitter)) cb_scope_section(&scope, "family");
  if (has_carry(emitter)) {
    cb_scope_section(&scope, "carry");
    cb_scope_optional(&scope, "carry_sums", number(emitter, plan->carry_sums));
    cb_scope_optional(&scope, "carry_counters", number(emitter, plan->carry_counters));
  }
  cb_scope_optional(&scope, "first_row_sum", first_row_sum(emitter));
  enum cb_status s = cb_epilogue_scope(emitter, &scope);
  if (s) return s;
  if (emitter->arena.failed) return cb_fail_memory(emitter->diag, "generated text", 0);
  for (int i = 0; i < COMMON_FUNCTIONS; i++)
    if (chosen[i]) cb_scope_optional_section(&scope, common_functions[i]);
  cb_text_release(&emitter->vectors);
  s = cb_expand(&emitter->vectors, emitter->share ? "several" : "vectors", &scope, emitter->diag);
  return s ? s : cb_scope_check(&scope, "the vectors", emitter->diag);
}

/* The matrix's shape comes with the vectors. */
static void read_shape(struct emitter *emitter) {
  struct cb_text *const texts[] = {&emitter->regions, &emitter->kernels};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    cb_word_instead(texts[i], "kRows", "vectors.rows");
    cb_word_instead(texts[i], "kCols", "vectors.cols");
  }
  if (emitter->regions.failed || emitter->kernels.failed) emitter->arena.failed = 1;
}

/* What a family's commit uses, which is y = αAx + βy, so that nothing is expanded again when that is found. */
static void foresee_commit(const struct emitter *emitter, int chosen[COMMON_FUNCTIONS]) {
  static const char uses[] = "commit product add_product";
  int used[COMMON_FUNCTIONS], commits = 0;
  if (!is_family(emitter) || emitter->plan->semiring != CB_PLUS_TIMES || cb_plan_is_complex(emitter->plan)) return;
  for (int i = 0; i < COMMON_FUNCTIONS; i++) commits |= chosen[i] && !strcmp(common_functions[i], "commit");
  cb_has_words(uses, common_functions, COMMON_FUNCTIONS, used);
  for (int i = 0; i < COMMON_FUNCTIONS; i++) chosen[i] |= commits && used[i];
}

static enum cb_status emit_vectors(struct emitter *emitter) {
  int chosen[COMMON_FUNCTIONS] = {0};
  enum cb_status s = CB_OK;
  if (is_family(emitter)) read_shape(emitter);
  choose_common(chosen, cb_text_string(&emitter->regions));
  choose_common(chosen, cb_text_string(&emitter->kernels));
  foresee_commit(emitter, chosen);
  do s = expand_vectors(emitter, chosen);
  while (!s && choose_common(chosen, cb_text_string(&emitter->vectors)));
  return s;
}

/* ---- the whole */

static void release(struct emitter *emitter) {
  cb_arena_release(&emitter->arena);
  cb_text_release(&emitter->text);
  cb_text_release(&emitter->vectors);
  cb_text_release(&emitter->regions);
  cb_text_release(&emitter->kernels);
}

/* Types, vectors, regions and kernels, in `text`. */
static enum cb_status emit_product(struct emitter *emitter, struct cb_text *text) {
  const struct cb_plan *plan = emitter->plan;
  enum cb_status s = CB_OK;
  for (int i = 0; i < plan->regions_count && !s; i++) s = emit_region(emitter, &plan->regions[i]);
  for (int i = 0; i < plan->launches_count && !s; i++) s = emit_kernel(emitter, i);
  if (is_shared_by_threads(emitter)) cb_word_instead(&emitter->kernels, "blockIdx.x", "own_block()");
  if (!s) s = emit_vectors(emitter);
  cb_text_add_string(text, cb_text_string(&emitter->vectors));
  cb_text_add_string(text, cb_text_string(&emitter->regions));
  if (plan->launches_count) cb_text_add_string(text, "// ---- kernels\n\n");
  cb_text_add_string(text, cb_text_string(&emitter->kernels));
  return s;
}

/* Names of a namespace that the host calls. */
static void add_using(const struct emitter *emitter, struct cb_text *text, const char *name) {
  for (int l = 0; l < emitter->plan->launches_count; l++) {
    char own[128];
    cb_source_kernel(emitter->plan, emitter->label, l, own, sizeof own);
    add_suffix(own, sizeof own, name);
    cb_text_add(text, "using %s::%s;\n", name, own);
  }
  if (emitter->share != &emitter->plan->shares[CB_VECTORS_COPIED]) return;
  char copy[96];
  cb_source_copy_kernel(emitter->plan, emitter->label, CB_COPY_SUFFIX, copy, sizeof copy);
  cb_text_add(text, "using %s::%s;\n", name, copy);
  if (!emitter->share->y_too) return;
  cb_source_copy_kernel(emitter->plan, emitter->label, CB_COPY_Y_SUFFIX, copy, sizeof copy);
  cb_text_add(text, "using %s::%s;\n", name, copy);
}

/* A kernel that lays X out by rows, or Y where it lies, at the end of its namespace. */
static enum cb_status emit_copy(struct emitter *emitter, const char *definition, const char *suffix,
                                struct cb_text *text) {
  const struct cb_plan *plan = emitter->plan;
  struct cb_scope scope = {0};
  char kernel[96];
  cb_source_copy_kernel(plan, emitter->label, suffix, kernel, sizeof kernel);
  cb_scope_placeholder(&scope, "kernel", kernel);
  cb_scope_placeholder(&scope, "count", number(emitter, cb_share_vectors_of(emitter->share)));
  cb_scope_optional(&scope, "tile_rows", number(emitter, cb_copy_rows(emitter->share, plan->vector_type)));
  cb_scope_optional(&scope, "cols", number(emitter, plan->cols));
  cb_scope_optional(&scope, "rows", number(emitter, plan->rows));
  if (has_scalars(emitter)) cb_scope_optional_section(&scope, "axpby");
  cb_scope_placeholder(&scope, "threads", number(emitter, CB_COPY_THREADS));
  if (emitter->arena.failed) return cb_fail_memory(emitter->diag, "generated text", 0);
  return cb_expand_definition(text, "several", definition, &scope, emitter->diag);
}

/* The product in a namespace of its own. */
static enum cb_status emit_namespace(struct emitter *emitter, const char *name, struct cb_text *text) {
  cb_text_release(&emitter->regions);
  cb_text_release(&emitter->kernels);
  cb_text_add(text, "namespace %s {\n\n", name);
  enum cb_status s = emit_product(emitter, text);
  const int copied = emitter->share == &emitter->plan->shares[CB_VECTORS_COPIED];
  if (!s && copied) s = emit_copy(emitter, "copy_x", CB_COPY_SUFFIX, text);
  if (!s && copied && emitter->share->y_too) s = emit_copy(emitter, "copy_y", CB_COPY_Y_SUFFIX, text);
  cb_text_add(text, "}  // namespace %s\n", name);
  add_using(emitter, text, name);
  cb_text_add_string(text, "\n");
  return s;
}

/* The same with heads of split values alone. */
static enum cb_status emit_heads(struct emitter *emitter, struct cb_text *text) {
  const int clocked = emitter->clocked;
  emitter->clocked = 0;
  emitter->heads = 1;
  const enum cb_status s = emit_namespace(emitter, "heads", text);
  emitter->heads = 0;
  emitter->clocked = clocked;
  return s;
}

/* The same for several vectors, in a namespace for each way in which they may lie. */
static enum cb_status emit_vector_kernels(struct emitter *emitter, struct cb_text *text) {
  const struct cb_plan *plan = emitter->plan;
  struct cb_scope none = {0};
  const int clocked = emitter->clocked;
  enum cb_status s = cb_expand_definition(text, "several", "columns", &none, emitter->diag);
  emitter->clocked = 0;
  for (int kernel = 0; kernel < CB_VECTOR_KERNELS && !s; kernel++) {
    if (!cb_plan_vectors(plan, (enum cb_vector_kernel)kernel)) continue;
    emitter->share = &plan->shares[kernel];
    s = emit_namespace(emitter, cb_vector_kernel_name((enum cb_vector_kernel)kernel), text);
  }
  emitter->share = NULL;
  emitter->clocked = clocked;
  return s;
}

/* All that the device sees behind the prelude, in `text`. */
static enum cb_status emit_device(struct emitter *emitter, struct cb_text *text) {
  enum cb_status s = emit_product(emitter, text);
  if (!s && cb_plan_has_heads(emitter->plan) && emitter->plan->launches_count) s = emit_heads(emitter, text);
  if (!s && emitter->plan->vectors > 1 && emitter->plan->launches_count) s = emit_vector_kernels(emitter, text);
  return s;
}

/* Hands the finished text over. */
static enum cb_status take_source(struct cb_source *source, struct emitter *emitter) {
  const size_t length = emitter->text.length;
  const char *body = cb_source_behind_prelude(cb_text_string(&emitter->text));
  if (emitter->text.failed || !body) return cb_fail_memory(emitter->diag, "generated text", length);
  const int64_t before = body - emitter->text.bytes;
  *source = (struct cb_source){cb_text_detach(&emitter->text), (int64_t)length, before};
  return source->text ? CB_OK : cb_fail_memory(emitter->diag, "generated text", length);
}

static enum cb_status emit(struct cb_source *source, struct emitter *emitter) {
  struct cb_text device = {0};
  *source = (struct cb_source){0};
  enum cb_status s = cb_emit_header(emitter);
  if (!s) s = emit_device(emitter, &device);
  if (!s) s = cb_check_intrinsics(cb_text_string(&device), emitter->diag);
  if (!s) s = cb_source_with_prelude(&emitter->text, &device, emitter->diag);
  if (!s) s = cb_emit_host(emitter);
  if (!s) s = take_source(source, emitter);
  cb_text_release(&device);
  release(emitter);
  return s;
}

enum cb_status cb_source_emit(struct cb_source *source, const struct cb_plan *plan, const struct cb_label *label,
                              const struct cb_blob *blob, enum cb_embed embed, struct cb_diag *diag) {
  return cb_source_emit_tier(source, plan, label, blob, embed, CB_TIER_SPECIALISED, diag);
}

enum cb_status cb_source_emit_tier(struct cb_source *source, const struct cb_plan *plan, const struct cb_label *label,
                                   const struct cb_blob *blob, enum cb_embed embed, enum cb_tier tier,
                                   struct cb_diag *diag) {
  struct emitter emitter = {
      .plan = plan, .label = label, .blob = blob, .tier = tier, .embed = cb_source_embeds(blob, embed), .diag = diag};
  return emit(source, &emitter);
}

enum cb_status cb_source_emit_clocked(struct cb_source *source, const struct cb_plan *plan,
                                      const struct cb_label *label, struct cb_diag *diag) {
  struct emitter emitter = {.plan = plan, .label = label, .clocked = 1, .diag = diag};
  return emit(source, &emitter);
}

enum cb_status cb_source_outlined(struct cb_source *source, const struct cb_outline *outline, struct cb_diag *diag) {
  const struct cb_label label = {.matrix = CB_FAMILY_SYMBOL, .symbol = CB_FAMILY_SYMBOL};
  struct emitter emitter = {.plan = &outline->plan, .label = &label, .tier = CB_TIER_FAMILY, .diag = diag};
  struct cb_text device = {0};
  *source = (struct cb_source){0};
  enum cb_status s = emit_device(&emitter, &device);
  if (!s) s = cb_source_with_prelude(&emitter.text, &device, diag);
  if (!s) cb_family_leave_out_objects(&emitter.text);
  if (!s) s = take_source(source, &emitter);
  cb_text_release(&device);
  release(&emitter);
  return s;
}

enum cb_status cb_source_family(struct cb_source *source, const struct cb_plan *plan, struct cb_diag *diag) {
  struct cb_outline outline;
  *source = (struct cb_source){0};
  enum cb_status s = cb_outline_make(&outline, plan, diag);
  if (!s) s = cb_source_outlined(source, &outline, diag);
  cb_outline_release(&outline);
  return s;
}

void cb_source_release(struct cb_source *source) {
  cb_free(source->text);
  *source = (struct cb_source){0};
}
