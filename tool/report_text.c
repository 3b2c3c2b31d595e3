// SPDX-License-Identifier: Apache-2.0
/* cbgen report: the device part of the kernel's text, its constants with their origin, and what each line was compiled
 * to. */
#include "tool/report.h"

#include "tool/facts.h"

#include "base/arena.h"
#include "base/memory.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { VALUE_SHOWN = 60, MNEMONICS = 32, MNEMONICS_SHOWN = 3 };

/* A part of the text. */
struct span {
  const char *at;
  int length;
};

struct constant {
  struct span region; /* its namespace; empty: none */
  struct span name, value;
  const char *origin;
  int line;
};

/* The text with what was found in it. */
struct text {
  const char *begin, *end;
  struct cb_arena arena;
  int count, lines;
  struct constant *constants;
  int *first; /* of the instructions of line i in `order`; lines + 2 of them */
  int *order; /* numbers of instructions, by line */
};

static int same(struct span one, struct span other) {
  return one.length == other.length && !memcmp(one.at, other.at, (size_t)one.length);
}

static int line_length(const struct text *text, const char *line) {
  const char *end = memchr(line, '\n', (size_t)(text->end - line));
  return (int)((end ? end : text->end) - line);
}

/* The first place of `what` in a span; NULL: there is none. */
static const char *find(struct span span, const char *what) {
  return memmem(span.at, (size_t)span.length, what, strlen(what));
}

static struct span trimmed(struct span span) {
  while (span.length && span.at[0] == ' ') span.at++, span.length--;
  while (span.length && span.at[span.length - 1] == ' ') span.length--;
  return span;
}

/* ---- constants: "constexpr TYPE NAME = VALUE;  // ORIGIN", and tables, "__device__ const TYPE NAME[…] = {" */

/* The name before "=", or before "[". */
static int constant_name(struct span line, struct span *name) {
  const struct span code = trimmed(line);
  const int is_constant = code.length > 10 && (!strncmp(code.at, "constexpr ", 10) || !strncmp(code.at, "static constexpr ", 17));
  const int is_table = code.length > 17 && !strncmp(code.at, "__device__ const ", 17);
  const char *equals = is_constant || is_table ? find(code, " = ") : NULL, *end = equals, *bracket;
  if (!equals) return 0;
  bracket = memchr(code.at, '[', (size_t)(equals - code.at));
  if (bracket) end = bracket;
  const char *at = end;
  while (at > code.at && cb_is_name(at[-1])) at--;
  *name = (struct span){at, (int)(end - at)};
  return name->length > 0 && !memchr(code.at, '(', (size_t)(equals - code.at));
}

static struct span value_of(struct span line) {
  const char *at = find(line, " = ") + 3, *comment = find(line, "//");
  const char *end = comment ? comment : line.at + line.length;
  struct span value = trimmed((struct span){at, (int)(end - at)});
  if (value.length && value.at[value.length - 1] == ';') value.length--;
  return value;
}

static int is_comment(struct span line) {
  const struct span code = trimmed(line);
  return code.length > 3 && !strncmp(code.at, "// ", 3) && strncmp(code.at, "// --", 5);
}

/* The comment lines that stand directly above line `number`, joined. `starts` are those of all lines. Constants within
 * a function may have none: they follow from others. */
static const char *comment_above(struct text *text, const char *const *starts, int number) {
  struct cb_text words = {0};
  int first = number;
  while (first > 0 && is_comment((struct span){starts[first - 1], line_length(text, starts[first - 1])})) first--;
  for (int i = first; i < number; i++) {
    const struct span comment = trimmed((struct span){starts[i], line_length(text, starts[i])});
    cb_text_add(&words, "%s%.*s", i > first ? " " : "", comment.length - 3, comment.at + 3);
  }
  const char *kept = cb_arena_string(&text->arena, words.length ? cb_text_string(&words) : "follows from what its value names");
  cb_text_release(&words);
  return kept;
}

static const char *origin_of(struct text *text, const char *const *starts, int number) {
  const struct span line = {starts[number], line_length(text, starts[number])};
  const char *comment = find(line, "// ");
  if (!comment) return comment_above(text, starts, number);
  return cb_arena_format(&text->arena, "%.*s", (int)(line.at + line.length - comment - 3), comment + 3);
}

/* Follows "namespace NAME {" and its end. */
static void follow_region(struct span *region, struct span line) {
  static const char begin[] = "namespace ", end[] = "}  // namespace";
  if (line.length > (int)strlen(end) && !strncmp(line.at, end, strlen(end))) *region = (struct span){0};
  if (line.length <= (int)strlen(begin) || strncmp(line.at, begin, strlen(begin))) return;
  region->at = line.at + strlen(begin);
  for (region->length = 0; cb_is_name(region->at[region->length]);) region->length++;
}

static void find_constants(struct text *text, const char *const *starts) {
  struct span region = {0}, name;
  for (int i = 0; i < text->lines && !text->arena.failed; i++) {
    const struct span line = {starts[i], line_length(text, starts[i])};
    follow_region(&region, line);
    if (!constant_name(line, &name)) continue;
    const struct constant found = {region, name, value_of(line), origin_of(text, starts, i), i + 1};
    struct constant *list = cb_arena_grow(&text->arena, text->constants, text->count, sizeof *list);
    if (!list) return;
    text->constants = list;
    list[text->count++] = found;
  }
}

/* What a name means within a region; NULL: it is no constant. */
static const struct constant *find_constant(const struct text *text, struct span region, struct span name) {
  const struct constant *found = NULL;
  for (int i = 0; i < text->count; i++) {
    const struct constant *one = &text->constants[i];
    if (!same(one->name, name) || (one->region.length && !same(one->region, region))) continue;
    if (!found || one->region.length) found = one;
  }
  return found;
}

static void add_constants(struct cb_html *rows, const struct text *text) {
  for (int i = 0; i < text->count; i++) {
    const struct constant *one = &text->constants[i];
    const int is_long = one->value.length > VALUE_SHOWN;
    const int is_open = one->value.length && one->value.at[one->value.length - 1] == '{';
    cb_html_set(rows, "id", "k%d", i);
    cb_html_set(rows, "name", "%.*s", one->name.length, one->name.at);
    cb_html_set(rows, "region", "%.*s", one->region.length ? one->region.length : 3, one->region.length ? one->region.at : "all");
    if (is_open) cb_html_set(rows, "value", "a table");
    else cb_html_set(rows, "value", "%.*s%s", is_long ? VALUE_SHOWN : one->value.length, one->value.at, is_long ? " …" : "");
    cb_html_set(rows, "origin", "%s", one->origin ? one->origin : "");
    cb_html_set(rows, "line", "%d", one->line);
    cb_html_add(rows, "constant");
  }
}

/* ---- a line of the text */

static void add_plain(struct cb_text *out, const char *at, const char *end, const char *class) {
  if (at == end) return;
  if (class) cb_text_add(out, "<span class=\"%s\">", class);
  cb_html_escape(out, at, (size_t)(end - at));
  if (class) cb_text_add_string(out, "</span>");
}

static void add_use(struct cb_html *uses, const struct text *text, const struct constant *constant) {
  const int is_table = constant->value.length && constant->value.at[0] == '{';
  cb_html_set(uses, "id", "k%d", (int)(constant - text->constants));
  cb_html_set(uses, "name", "%.*s", constant->name.length, constant->name.at);
  if (is_table) cb_html_set(uses, "value", "a table");
  else cb_html_set(uses, "value", "%.*s", constant->value.length, constant->value.at);
  cb_html_set(uses, "origin", "%s", constant->origin ? constant->origin : "");
  cb_html_add_inline(uses, "constant_use");
}

/* The code of a line up to `end`: constants lead to their origin. */
static void add_code(struct cb_html *uses, const struct text *text, struct span region, const char *at,
                     const char *end) {
  const char *plain = at;
  while (at < end) {
    struct span word = {at, 0};
    while (at < end && cb_is_name(*at)) at++;
    word.length = (int)(at - word.at);
    const int is_member = word.at > plain && (word.at[-1] == '.' || word.at[-1] == '>');
    const struct constant *constant =
        word.length && !isdigit((unsigned char)*word.at) && !is_member ? find_constant(text, region, word) : NULL;
    if (constant) {
      add_plain(&uses->text, plain, word.at, NULL);
      add_use(uses, text, constant);
      plain = at;
    }
    while (at < end && !cb_is_name(*at)) at++;
  }
  add_plain(&uses->text, plain, end, NULL);
}

static void add_line_text(struct cb_html *out, const struct text *text, struct span region, struct span line) {
  const char *end = line.at + line.length, *comment = find(line, "//");
  const struct span code = trimmed(line);
  if (code.length && *code.at == '#') comment = NULL;
  if (code.length && *code.at == '#') add_plain(&out->text, line.at, end, "d");
  else add_code(out, text, region, line.at, comment ? comment : end);
  if (comment) add_plain(&out->text, comment, end, "c");
}

/* ---- its instructions */

static enum cb_status sort_by_line(struct text *text, const struct cb_listing *listing, struct cb_diag *diag) {
  text->first = cb_arena_alloc(&text->arena, (size_t)text->lines + 2, sizeof *text->first);
  text->order = cb_arena_alloc(&text->arena, (size_t)listing->count + 1, sizeof *text->order);
  if (text->arena.failed) return cb_fail_memory(diag, "the kernel's lines", 0);
  for (int i = 0; i < listing->count; i++)
    if (!listing->list[i].is_label && listing->list[i].line <= text->lines) text->first[listing->list[i].line + 1]++;
  for (int line = 0; line <= text->lines; line++) text->first[line + 1] += text->first[line];
  for (int i = 0; i < listing->count; i++)
    if (!listing->list[i].is_label && listing->list[i].line <= text->lines)
      text->order[text->first[listing->list[i].line]++] = i;
  for (int line = text->lines; line >= 0; line--) text->first[line + 1] = text->first[line];
  text->first[0] = 0;
  return CB_OK;
}

/* "ld.global" of "@%p1 ld.global.nc.u16 %rs1, [%rd2];" */
static struct span mnemonic_of(const struct cb_instruction *instruction) {
  const char *at = instruction->text, *end = at + instruction->length;
  if (*at == '@') {
    while (at < end && *at != ' ' && *at != '\t') at++;
    while (at < end && (*at == ' ' || *at == '\t')) at++;
  }
  struct span word = {at, 0};
  for (int dots = 0; at + word.length < end && (cb_is_name(at[word.length]) || at[word.length] == '.'); word.length++)
    if (at[word.length] == '.' && ++dots == 2) break;
  return word;
}

/* "12: ld.global ×4, fma.rn ×4, mov.u32 ×2, …" */
static void summarise(struct cb_text *words, const struct cb_listing *listing, const int *numbers, int count) {
  struct span kinds[MNEMONICS];
  int times[MNEMONICS] = {0}, known = 0;
  for (int i = 0; i < count; i++) {
    const struct span word = mnemonic_of(&listing->list[numbers[i]]);
    int k = 0;
    while (k < known && !same(kinds[k], word)) k++;
    if (k == MNEMONICS) continue;
    kinds[k] = word;
    known += k == known;
    times[k]++;
  }
  cb_text_add(words, "%d:", count);
  for (int shown = 0; shown < known && shown < MNEMONICS_SHOWN; shown++) {
    int most = 0;
    for (int k = 1; k < known; k++) most = times[k] > times[most] ? k : most;
    cb_text_add(words, "%s %.*s", shown ? "," : "", kinds[most].length, kinds[most].at);
    if (times[most] > 1) cb_text_add(words, " ×%d", times[most]);
    times[most] = 0;
  }
  if (known > MNEMONICS_SHOWN) cb_text_add_string(words, ", …");
}

static void add_instructions(struct cb_html *rows, const struct text *text, const struct cb_listing *listing,
                             int line) {
  struct cb_text summary = {0}, code = {0};
  const int first = text->first ? text->first[line] : 0, count = text->first ? text->first[line + 1] - first : 0;
  if (!count) return;
  summarise(&summary, listing, text->order + first, count);
  for (int i = first; i < first + count; i++) {
    const struct cb_instruction *one = &listing->list[text->order[i]];
    cb_text_add(&code, "%s%5d  %.*s", i > first ? "\n" : "", text->order[i] + 1, one->length, one->text);
  }
  cb_html_has(rows, "instructions");
  cb_html_set(rows, "summary", "%s", cb_text_string(&summary));
  cb_html_set(rows, "code", "%s", cb_text_string(&code));
  cb_text_release(&summary);
  cb_text_release(&code);
}

static void add_lines(struct cb_html *rows, const struct cb_report_page *page, const struct text *text,
                      const struct cb_report *report, const char *const *starts) {
  struct span region = {0};
  for (int i = 0; i < text->lines && !rows->status; i++) {
    struct cb_html code = cb_report_own(page);
    const struct span line = {starts[i], line_length(text, starts[i])};
    follow_region(&region, line);
    add_line_text(&code, text, region, line);
    cb_html_set(rows, "number", "%d", i + 1);
    cb_html_markup(rows, "TEXT", cb_html_take(&code, rows));
    add_instructions(rows, text, &report->listing, i + 1);
    cb_html_add(rows, "line");
    cb_html_release(&code);
  }
}

/* All in their order, each with its line. */
static void set_listing(struct cb_html *html, const struct cb_listing *listing) {
  struct cb_text all = {0};
  for (int i = 0; i < listing->count; i++) {
    const struct cb_instruction *one = &listing->list[i];
    if (one->is_label) cb_text_add(&all, "%.*s\n", one->length, one->text);
    else cb_text_add(&all, "%5d  line %4d  %.*s\n", i + 1, one->line, one->length, one->text);
  }
  if (all.failed && !html->status) html->status = cb_fail_memory(html->diag, "the instructions", all.length);
  cb_html_set(html, "listing", "%s", cb_text_string(&all));
  cb_text_release(&all);
}

static void say_instructions(struct cb_html *html, const struct cb_report *report) {
  static const char how[] = "A line of the text that has instructions can be opened; their numbers say where they stand in the "
                            "whole. What was inlined counts where it was written, not where it was called.";
  static const char host[] = "Without the host part, which loads the data and launches the kernel.";
  cb_html_set(html, "instruction_head", "%s", report->instructions ? report->instructions : "");
  if (!report->instructions) {
    cb_html_set(html, "text_words", "%s There are no instructions beside it: %s.", host, report->uncompiled);
    return;
  }
  cb_html_has(html, "instructions");
  cb_html_set(html, "instruction_kind", "%s", report->instructions);
  cb_html_set(html, "instruction_count", "%d", report->listing.instructions);
  set_listing(html, &report->listing);
  if (*report->without_sass)
    cb_html_set(html, "text_words", "%s %s It is PTX by %s, not machine code: %s.", host, how, report->compiler,
                report->without_sass);
  else
    cb_html_set(html, "text_words", "%s %s It is machine code by %s, disassembled by nvdisasm.", host, how, report->compiler);
}

/* The beginnings of all lines; the arena's. */
static const char **split_lines(struct text *text) {
  for (const char *at = text->begin; at < text->end; at += line_length(text, at) + 1) text->lines++;
  const char **starts = cb_arena_alloc(&text->arena, (size_t)text->lines + 1, sizeof *starts);
  int line = 0;
  for (const char *at = text->begin; starts && at < text->end; at += line_length(text, at) + 1) starts[line++] = at;
  return starts;
}

void cb_report_text(struct cb_report_page *page, const struct cb_report *report) {
  const char *whole = report->job.source.text;
  struct text text = {.begin = whole, .end = whole + cb_device_length(whole)};
  struct cb_html *rows = cb_report_pieces(page, "LINES"), *constants = cb_report_pieces(page, "CONSTANTS");
  const char **starts = split_lines(&text);
  if (starts) find_constants(&text, starts);
  if (report->instructions && !text.arena.failed) rows->status = sort_by_line(&text, &report->listing, rows->diag);
  if (text.arena.failed && !rows->status) rows->status = cb_fail_memory(rows->diag, "the kernel's lines", 0);
  if (!rows->status) {
    add_constants(constants, &text);
    add_lines(rows, page, &text, report, starts);
  }
  say_instructions(&page->html, report);
  cb_arena_release(&text.arena);
}
