// SPDX-License-Identifier: Apache-2.0
/* Facts of a kernel's text: see facts.h. The text's form is in codegen/source.h and templates/region.cu.in. */
#include "tool/facts.h"

#include "base/memory.h"
#include "base/types.h"
#include "codegen/source.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const group_names[CB_FACT_GROUPS] = {[CB_FACTS_KEY] = "key",
                                                        [CB_FACTS_KERNEL] = "kernel",
                                                        [CB_FACTS_PLAN] = "plan",
                                                        [CB_FACTS_CONSTANTS] = "constants",
                                                        [CB_FACTS_ARRAYS] = "arrays",
                                                        [CB_FACTS_BYTES] = "bytes",
                                                        [CB_FACTS_REGISTERS] = "registers"};

/* ---- the list */

static struct cb_known *find(const struct cb_facts *facts, enum cb_fact_group group, const char *name) {
  for (int i = 0; i < facts->count; i++)
    if (facts->list[i].group == group && !strcmp(facts->list[i].name, name)) return &facts->list[i];
  return NULL;
}

static struct cb_known *make_room(struct cb_facts *facts) {
  if (facts->failed || facts->count < facts->room) return facts->failed ? NULL : &facts->list[facts->count];
  const int room = facts->room ? 2 * facts->room : 64;
  struct cb_known *larger = cb_realloc(facts->list, (size_t)room, sizeof *larger);
  facts->failed = !larger;
  if (!larger) return NULL;
  facts->list = larger;
  facts->room = room;
  return &facts->list[facts->count];
}

/* Takes both texts over. A name that is there already gets a number: "split/sell/lanes#2". */
static void add_texts(struct cb_facts *facts, enum cb_fact_group group, struct cb_text *name, struct cb_text *value) {
  const size_t length = name->length;
  cb_text_add_string(value, "");
  for (int number = 2; !name->failed && find(facts, group, cb_text_string(name)); number++) {
    name->length = length;
    cb_text_add(name, "#%d", number);
  }
  struct cb_known *known = make_room(facts);
  facts->failed |= name->failed | value->failed;
  if (known && !facts->failed) {
    *known = (struct cb_known){group, cb_text_detach(name), cb_text_detach(value)};
    facts->count++;
  }
  cb_text_release(name);
  cb_text_release(value);
}

void cb_facts_add(struct cb_facts *facts, enum cb_fact_group group, const char *name, const char *format, ...) {
  struct cb_text label = {0}, value = {0};
  char words[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(words, sizeof words, format, arguments);
  va_end(arguments);
  cb_text_add_string(&label, name);
  cb_text_add_string(&value, words);
  add_texts(facts, group, &label, &value);
}

void cb_facts_release(struct cb_facts *facts) {
  for (int i = 0; i < facts->count; i++) {
    cb_free(facts->list[i].name);
    cb_free(facts->list[i].value);
  }
  cb_free(facts->list);
  *facts = (struct cb_facts){0};
}

/* ---- the head */

size_t cb_device_length(const char *text) {
  const char *host = strstr(text, "\n#ifndef __CUDACC_RTC__\n");
  return host ? (size_t)(host + 1 - text) : strlen(text);
}

/* The bytes from `from` up to the next `end`, or the line's end. */
static int length_to(const char *from, const char *end) {
  const char *stop = strstr(from, end);
  const size_t line = strcspn(from, "\n");
  return (int)(stop && (size_t)(stop - from) < line ? (size_t)(stop - from) : line);
}

/* "// y = αA·x for "NAME": ROWS × COLS, N nonzeros, TYPE.  cbgen VERSION, do not edit." */
static int read_first_line(struct cb_facts *facts, const char *text) {
  static const char slashes[] = "// ", called[] = " for \"", behind[] = "\": ", maker[] = ".  cbgen ";
  const char *product = text + strlen(slashes);
  if (strncmp(text, slashes, strlen(slashes))) return 0;
  const char *name = strstr(product, called), *line_end = product + strcspn(product, "\n");
  const char *size = name ? strstr(name, behind) : NULL, *version = size ? strstr(size, maker) : NULL;
  if (!version || version > line_end) return 0;
  cb_facts_add(facts, CB_FACTS_KERNEL, "product", "%.*s", (int)(name - product), product);
  name += strlen(called);
  cb_facts_add(facts, CB_FACTS_KERNEL, "matrix", "%.*s", (int)(size - name), name);
  size += strlen(behind);
  cb_facts_add(facts, CB_FACTS_KERNEL, "size", "%.*s", (int)(version - size), size);
  version += strlen(maker);
  cb_facts_add(facts, CB_FACTS_KERNEL, "cbgen", "%.*s", length_to(version, ", do not"), version);
  return 1;
}

/* "//   WORD    VALUE        WORD  VALUE": names stand alone, values end at two spaces. */
static void read_head_line(struct cb_facts *facts, const char *line, const char *word) {
  const char *at = strstr(line, word), *end = line + strcspn(line, "\n");
  if (!at || at >= end) return;
  at += strlen(word);
  at += strspn(at, " ");
  const int length = length_to(at, "  ");
  cb_facts_add(facts, CB_FACTS_KERNEL, word, "%.*s", length, at);
}

/* ---- the plan: a list is "(" NAME { atom | list } ")"; a list of atoms alone is a fact */

static const char *behind_list(const char *at) {
  int depth = 0;
  do depth += (*at == '(') - (*at == ')');
  while (*at && *at++ != '\n' && depth);
  return at;
}

/* The next atom or list within a list, from `at` on; NULL: its end. */
static const char *next_item(const char *at, const char *end) {
  while (at < end && *at == ' ') at++;
  return at < end && *at != ')' && *at != '\n' && *at ? at : NULL;
}

static const char *behind_item(const char *at) {
  return *at == '(' ? behind_list(at) : at + strcspn(at, " ()\n");
}

/* Reads the list at `at` and those in it; `path` is that of the list around it. */
static void read_list(struct cb_facts *facts, const char *at, const char *path, int depth) {
  enum { DEEPEST = 64 };
  struct cb_text name = {0}, label = {0}, atoms = {0};
  const char *const end = behind_list(at), *const first = at + 1 + strcspn(at + 1, " ()\n");
  cb_text_add(&name, "%s%s%.*s", path, *path ? "/" : "", (int)(first - at - 1), at + 1);
  for (at = first; (at = next_item(at, end)); at = behind_item(at))
    if (*at != '(') cb_text_add(&atoms, "%s%.*s", atoms.length ? " " : "", (int)(behind_item(at) - at), at);
  cb_text_add_string(&label, cb_text_string(&name));
  if (atoms.length) add_texts(facts, CB_FACTS_PLAN, &label, &atoms);
  for (at = first; depth < DEEPEST && (at = next_item(at, end)); at = behind_item(at))
    if (*at == '(') read_list(facts, at, cb_text_string(&name), depth + 1);
  cb_text_release(&name);
  cb_text_release(&label);
  cb_text_release(&atoms);
}

/* ---- regions */

struct region {
  char name[64]; /* "" outside of regions */
  int in_arrays; /* within its struct Arrays */
  int64_t bytes; /* of stored arrays so far, in all regions */
};

static void name_of(const struct region *region, const char *word, int length, char name[192]) {
  snprintf(name, 192, "%s%s%.*s", region->name, *region->name ? "/" : "", length, word);
}

/* "constexpr TYPE NAME = VALUE;  // …" */
static void read_constant(struct cb_facts *facts, const struct region *region, const char *line) {
  char name[192];
  const char *equals = strstr(line, " = ");
  if (!equals || equals > line + strcspn(line, ";\n")) return;
  const char *word = equals;
  while (word > line && word[-1] != ' ' && word[-1] != '*') word--;
  name_of(region, word, (int)(equals - word), name);
  cb_facts_add(facts, CB_FACTS_CONSTANTS, name, "%.*s", length_to(equals + 3, ";"), equals + 3);
}

/* Bytes of an element by its type in CUDA; 0: unknown. */
static int64_t size_of(const char *type, int length) {
  static const struct {
    const char *name;
    int bytes;
  } sizes[] = {{"uint8_t", 1}, {"uint16_t", 2}, {"uint32_t", 4}, {"uint64_t", 8},
               {"double", 8},  {"float", 4},    {"half_t", 2},   {"bfloat16_t", 2}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if ((int)strlen(sizes[i].name) == length && !memcmp(sizes[i].name, type, (size_t)length)) return sizes[i].bytes;
  return 0;
}

/* "  const TYPE *NAME;  // COUNT: MEANING", a member of struct Arrays. Bytes are known for types of known size. */
static void read_member(struct cb_facts *facts, struct region *region, const char *line) {
  static const char start[] = "  const ";
  const char *type = line + strlen(start), *star = strstr(line, " *"), *comment = strstr(line, ";  // ");
  char name[192];
  if (strncmp(line, start, strlen(start)) || !star || !comment || star > comment ||
      comment > line + strcspn(line, "\n"))
    return;
  const int64_t count = strtoll(comment + 6, NULL, 10), bytes = count * size_of(type, (int)(star - type));
  name_of(region, star + 2, (int)(comment - star - 2), name);
  region->bytes += bytes;
  cb_facts_add(facts, CB_FACTS_ARRAYS, name, "%.*s, %lld, %lld B, stored", (int)(star - type), type, (long long)count,
               (long long)bytes);
}

/* Arrays without memory: "CBGEN_DEVICE int NAME(const Arrays &, int i) { return EXPRESSION; }", and tables of the text,
 * "__device__ const TYPE NAME_table[] = {…};". */
static void read_accessor(struct cb_facts *facts, const struct region *region, const char *line) {
  static const char table[] = "_table[] = {", accessor[] = "(const Arrays &, ";
  const char *end = line + strcspn(line, "\n"), *at = strstr(line, table), *word;
  char name[192];
  const int is_table = at && at < end && !strncmp(line, "__device__ const ", 17);
  if (!is_table) at = strstr(line, accessor);
  if (!at || at >= end) return;
  for (word = at; word > line && (isalnum((unsigned char)word[-1]) || word[-1] == '_');) word--;
  name_of(region, word, (int)(at - word), name);
  if (is_table) {
    int64_t count = 1;
    for (at += strlen(table); *at && *at != '}'; at++) count += *at == ',';
    cb_facts_add(facts, CB_FACTS_ARRAYS, name, "%.*s, %lld, in the text", (int)(word - line) - 18, line + 17,
                 (long long)count);
  } else if ((at = strstr(at, "return ")) && at < end && !strstr(name, "_vector") &&
             !find(facts, CB_FACTS_ARRAYS, name))
    cb_facts_add(facts, CB_FACTS_ARRAYS, name, "computed: %.*s", length_to(at + 7, ";"), at + 7);
}

static void read_line(struct cb_facts *facts, struct region *region, const char *line) {
  static const char opening[] = "namespace ", closing[] = "}  // namespace", constant[] = "constexpr ";
  static const char arrays[] = "struct Arrays {";
  if (!strncmp(line, arrays, strlen(arrays)) || !strncmp(line, "};", 2)) region->in_arrays = *line == 's';
  if (!strncmp(line, opening, strlen(opening))) {
    const char *word = line + strlen(opening);
    snprintf(region->name, sizeof region->name, "%.*s", (int)strcspn(word, " {\n"), word);
  } else if (!strncmp(line, closing, strlen(closing)))
    *region->name = 0;
  else if (!strncmp(line, constant, strlen(constant)))
    read_constant(facts, region, line);
  else if (region->in_arrays)
    read_member(facts, region, line);
  else if (*region->name)
    read_accessor(facts, region, line);
}

enum cb_status cb_facts_read(struct cb_facts *facts, const char *text, const char *subject, struct cb_diag *diag) {
  static const char plan_line[] = "\n//   plan    (", stored[] = "stored  ";
  struct region region = {0};
  const char *plan = strstr(text, plan_line), *body = cb_source_behind_prelude(text);
  if (!read_first_line(facts, text) || !plan || !body)
    return cb_fail(diag, CB_ERR_FORMAT, "'%s' is no kernel that cbgen wrote: its head or its plan is missing", subject);
  read_list(facts, plan + strlen(plan_line) - 1, "", 0);
  const char *target = strstr(text, "\n//   target"), *pattern = strstr(text, "\n//   pattern");
  if (target) read_head_line(facts, target + 1, "target");
  if (target) read_head_line(facts, target + 1, "launch");
  if (pattern) read_head_line(facts, pattern + 1, "pattern");
  const char *const end = text + cb_device_length(text);
  for (const char *line = body; line && line < end; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
    read_line(facts, &region, line);
  cb_facts_add(facts, CB_FACTS_BYTES, "arrays", "%lld", (long long)region.bytes);
  const char *per_nonzero = pattern ? strstr(pattern, stored) : NULL;
  if (per_nonzero && per_nonzero < body)
    cb_facts_add(facts, CB_FACTS_BYTES, "per nonzero", "%.*s", length_to(per_nonzero + 8, " bytes"), per_nonzero + 8);
  return facts->failed ? cb_fail_memory(diag, "facts of a kernel", 0) : CB_OK;
}

/* ---- comparing */

typedef void take_difference(void *user, enum cb_fact_group group, const char *name, const char *a, const char *b);

static int walk(enum cb_fact_group group, const struct cb_facts *a, const struct cb_facts *b, take_difference *take,
                void *user) {
  int count = 0;
  for (int i = 0; i < a->count; i++) {
    const struct cb_known *mine = &a->list[i], *other = mine->group == group ? find(b, group, mine->name) : NULL;
    if (mine->group != group || (other && !strcmp(mine->value, other->value))) continue;
    take(user, group, mine->name, mine->value, other ? other->value : NULL);
    count++;
  }
  for (int i = 0; i < b->count; i++) {
    if (b->list[i].group != group || find(a, group, b->list[i].name)) continue;
    take(user, group, b->list[i].name, NULL, b->list[i].value);
    count++;
  }
  return count;
}

/* A tree in the making: the path of the line before, whose beginning is not printed again. */
struct tree {
  struct cb_text *text;
  char path[256];
};

/* Lines for the parts of `name`'s path that the line before did not have; returns its last part. */
static const char *open_branches(struct tree *tree, const char *name, int *depth) {
  const char *part = name;
  *depth = 1;
  for (const char *slash; (slash = strchr(part, '/')); part = slash + 1, ++*depth) {
    const size_t length = (size_t)(slash - name) + 1;
    if (strncmp(tree->path, name, length))
      cb_text_add(tree->text, "%*s%.*s\n", 2 * *depth, "", (int)(slash - part), part);
  }
  snprintf(tree->path, sizeof tree->path, "%s", name);
  return part;
}

static void print_difference(void *user, enum cb_fact_group group, const char *name, const char *a, const char *b) {
  struct tree *tree = user;
  char printable[2][1024];
  int depth = 1;
  const int has_paths = group != CB_FACTS_KEY && group != CB_FACTS_KERNEL;
  const char *last = has_paths ? open_branches(tree, name, &depth) : name;
  const int width = 28 - 2 * depth;
  cb_escape(printable[0], sizeof printable[0], a ? a : "—", "");
  cb_escape(printable[1], sizeof printable[1], b ? b : "—", "");
  cb_text_add(tree->text, "%*s%-*s %s  →  %s\n", 2 * depth, "", width > 0 ? width : 0, last, printable[0],
              printable[1]);
}

int cb_facts_compare(struct cb_text *text, const struct cb_facts *a, const struct cb_facts *b) {
  int count = 0;
  for (int group = 0; group < CB_FACT_GROUPS; group++) {
    struct cb_text lines = {0};
    struct tree tree = {.text = &lines};
    const int differ = walk((enum cb_fact_group)group, a, b, print_difference, &tree);
    if (differ) cb_text_add(text, "%s\n%s", group_names[group], cb_text_string(&lines));
    text->failed |= lines.failed;
    cb_text_release(&lines);
    count += differ;
  }
  return count;
}

static void append_difference(void *user, enum cb_fact_group group, const char *name, const char *a, const char *b) {
  const struct cb_json *rows = user;
  const struct cb_json row = cb_json_object(rows->failed);
  (void)group;
  cb_json_set_text(row, "name", name);
  cb_json_set(row, "a", a ? cb_json_text(a) : json_null());
  cb_json_set(row, "b", b ? cb_json_text(b) : json_null());
  cb_json_append(*rows, row.json);
}

void cb_facts_compare_json(struct cb_json object, const struct cb_facts *a, const struct cb_facts *b) {
  for (int group = 0; group < CB_FACT_GROUPS; group++) {
    struct cb_json rows = cb_json_array(object.failed);
    walk((enum cb_fact_group)group, a, b, append_difference, &rows);
    cb_json_set(object, group_names[group], rows.json);
  }
}
