// SPDX-License-Identifier: Apache-2.0
/* A tile of merge in registers: see held.h. The marks that are looked for stand in templates/merge.cu.in. */
#include "codegen/program/held.h"

#include "base/integers.h"
#include "codegen/expand.h"

#include <stdlib.h>
#include <string.h>

static const char region_mark[] = "// ---- region ";

struct cb_held_region cb_held_region(const struct cb_product_text *product) {
  const char *at = strstr(cb_text_string(&product->regions), region_mark);
  const char *name = at ? at + sizeof region_mark - 1 : "";
  return (struct cb_held_region){name, (int)strcspn(name, ":")};
}

/* One region of merge, all of whose rows are in tiles that are padded, with one vector. */
static int is_of_tiles(const char *regions) {
  static const char *const absent[] = {"multiply_long", "first_end(", "empty_row(", "kBusyBlocks", "kParts"};
  const char *at = strstr(regions, region_mark);
  if (!at || strncmp(at + sizeof region_mark - 1, "merge", 5) != 0 || strstr(at + 1, region_mark)) return 0;
  for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
    if (strstr(at, absent[i])) return 0;
  return strstr(at, "  // No guard: tiles are padded.") != NULL;
}

int cb_held_blocks(const struct cb_product_text *product, const struct cb_program_request *request) {
  /* Nonzeros of a thread for which cg's 88 registers and three for each leave room: with 255, 128 and 80. */
  static const int most_items[] = {0, 15, 11, 5};
  enum { MOST = sizeof most_items / sizeof *most_items - 1 };
  static const char items[] = "\nconstexpr int kItems = ";
  const char *regions = cb_text_string(&product->regions), *at = strstr(regions, items);
  const int64_t tiles = request->launches[0].blocks;
  const int64_t multiprocessors = cb_larger(request->form.multiprocessors, 1);
  if (!product->commits_once || request->has_carry || request->launches_count > 1 ||
      request->launches[0].dynamic_shared || cb_program_has_heads(request->program) || !at || !is_of_tiles(regions))
    return 0;
  if (request->form.blocks && request->form.blocks != tiles) return 0;
  const int64_t each = cb_divide_up(tiles, multiprocessors);
  return each >= 1 && each <= MOST && strtol(at + sizeof items - 1, NULL, 10) <= most_items[each] ? (int)each : 0;
}

/* The line of `text` that begins with `head`, without its end; in a new text. */
static void take_line(struct cb_text *line, const char *text, const char *head) {
  const char *at = strstr(text, head);
  if (at) cb_text_add_bytes(line, at, strcspn(at, "\n"));
}

enum cb_status cb_held_take(struct cb_product_text *product, struct cb_diag *diag) {
  static const char chunk[] = "// Products 32 i + lane of the warp's chunk.", columns[] = "  int columns[kItems];\n  ";
  const char *regions = cb_text_string(&product->regions), *at = strstr(regions, chunk);
  const char *number = at ? strstr(at, columns) : NULL;
  const struct cb_held_region region = cb_held_region(product);
  struct cb_text name = {0}, place = {0}, type = {0}, made = {0}, function = {0};
  if (!number)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "the operator's text has no tiles, so no program can hold them");
  number += sizeof columns - 1;
  cb_text_add_bytes(&name, region.name, (size_t)region.length);
  cb_text_add_bytes(&type, number, strcspn(number, " "));
  take_line(&place, at, "  const int first = first_step(arrays, tile), base = ");
  cb_text_add_bytes(&made, regions, (size_t)(at - regions));
  struct cb_scope scope = {0}, of_function = {0};
  cb_scope_placeholder(&scope, "number", cb_text_string(&type));
  cb_scope_placeholder(&scope, "place", cb_text_string(&place));
  cb_scope_placeholder(&scope, "region", cb_text_string(&name));
  cb_scope_placeholder(&of_function, "region", cb_text_string(&name));
  enum cb_status s = cb_expand_definition(&made, "held", "region", &scope, diag);
  if (!s) s = cb_expand_definition(&function, "held", "function", &of_function, diag);
  made.failed |= name.failed | place.failed | type.failed;
  cb_text_release(&name);
  cb_text_release(&place);
  cb_text_release(&type);
  cb_text_release(&product->regions);
  cb_text_release(&product->functions);
  product->regions = made;
  product->functions = function;
  return s;
}
