// SPDX-License-Identifier: Apache-2.0
/* cbgen cache: what lies in the cache of compiled kernels (runtime/cache/cache.h), and removing it. */
#include "tool/cache_parts.h"

#include "base/json.h"
#include "base/memory.h"
#include "runtime/cache/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* One word behind `cbgen cache`; what it takes beside that is refused to the others. */
struct action {
  const char *name;
  int takes_key, takes_limit, takes_section, takes_json;
  int takes_kernels; /* what is made: --arch, --gpu, --transpose, options of the analysis */
  const char *takes_files; /* what its words are called; NULL: none */
  int makes;               /* the directory, if there is none */
  enum cb_status (*run)(struct cb_cache *cache, const struct cb_call *call, struct cb_diag *diag);
};

static int is_on(const struct cb_cache *cache) {
  return cb_cache_state(cache) == CB_CACHE_ON;
}

/* "3 min": how long ago. Clocks may differ, so the future is now. */
static void age_text(char text[24], int64_t then) {
  static const struct {
    int64_t seconds;
    const char *name;
  } units[] = {{24 * 3600, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
  int64_t age = (int64_t)time(NULL) - then;
  int unit = 0;
  if (age < 0) age = 0;
  while (unit < 3 && age < 2 * units[unit].seconds)
    unit++; /* 47 h, 119 min: not less than two digits' worth */
  snprintf(text, 24, "%lld %s", (long long)(age / units[unit].seconds), units[unit].name);
}

static enum cb_status print_document(struct cb_json document, struct cb_diag *diag) {
  struct cb_text text = {0};
  enum cb_status s = cb_json_write(&text, document, JSON_INDENT(2), "a report as JSON", diag);
  cb_text_add_string(&text, "\n");
  if (!s) s = cb_print(&text, diag);
  cb_text_release(&text);
  return s;
}

/* An entry that could not be read. */
static enum cb_status fail_outcome(enum cb_cache_outcome outcome, const struct cb_diag *why, struct cb_diag *diag) {
  const enum cb_status s = why->status == CB_ERR_MEMORY ? CB_ERR_MEMORY : CB_ERR_IO;
  return cb_fail_lines(diag, outcome == CB_CACHE_DAMAGED ? CB_ERR_WRONG : s, why->message);
}

/* ---- stats */

static int64_t count_foreign(const struct cb_cache_listing *listing) {
  int64_t count = 0;
  for (int64_t i = 0; i < listing->count; i++) count += listing->items[i].foreign;
  return count;
}

static struct cb_json stats_json(const struct cb_cache *cache, const struct cb_cache_listing *listing,
                                 int *failed) {
  static const char *const states[] = {[CB_CACHE_ON] = "on",
                                       [CB_CACHE_OFF] = "off",
                                       [CB_CACHE_NOWHERE] = "nowhere",
                                       [CB_CACHE_UNUSABLE] = "unusable"};
  const struct cb_json document = cb_json_object(failed);
  cb_json_set_text(document, "directory", cb_cache_directory(cache));
  cb_json_set_text(document, "state", states[cb_cache_state(cache)]);
  cb_json_set_text(document, "remark", cb_cache_remark(cache));
  const struct cb_json path = cb_json_array(failed);
  for (int base = 0; base < cb_cache_bases(cache); base++)
    cb_json_append(path, cb_json_text(cb_cache_base_directory(cache, base)));
  cb_json_set(document, "path", path.json);
  cb_json_set_integer(document, "entries", listing->count);
  cb_json_set_integer(document, "bytes", listing->bytes);
  cb_json_set_integer(document, "limit_bytes", cb_cache_limit(cache));
  cb_json_set_integer(document, "foreign", count_foreign(listing));
  cb_json_set_integer(document, "drafts", listing->drafts);
  cb_json_set_integer(document, "draft_bytes", listing->draft_bytes);
  if (listing->count) {
    cb_json_set_integer(document, "used_last", listing->items[0].used);
    cb_json_set_integer(document, "used_first", listing->items[listing->count - 1].used);
  }
  return document;
}

static void stats_text(struct cb_text *text, const struct cb_cache *cache,
                       const struct cb_cache_listing *listing) {
  char bytes[24], limit[24], last[24], first[24];
  const int64_t foreign = count_foreign(listing);
  cb_text_add(text, "directory  %s\n", *cb_cache_directory(cache) ? cb_cache_directory(cache) : "none");
  for (int base = 0; base < cb_cache_bases(cache); base++)
    cb_text_add(text, "reads      %s\n", cb_cache_base_directory(cache, base));
  if (*cb_cache_remark(cache)) cb_text_add(text, "remark     %s\n", cb_cache_remark(cache));
  cb_human_bytes(bytes, listing->bytes);
  cb_human_bytes(limit, cb_cache_limit(cache));
  cb_text_add(text, "entries    %lld, %s of at most %s\n", (long long)listing->count, bytes, limit);
  if (listing->count) {
    age_text(last, listing->items[0].used);
    age_text(first, listing->items[listing->count - 1].used);
    cb_text_add(text, "used       last %s ago; the next to be evicted, %s ago\n", last, first);
  }
  if (foreign)
    cb_text_add(text, "foreign    %lld: links, other users' or writable by others; never read\n",
                (long long)foreign);
  if (listing->drafts) {
    cb_human_bytes(bytes, listing->draft_bytes);
    cb_text_add(text, "drafts     %lld being written, or left by a process that died: %s\n",
                (long long)listing->drafts, bytes);
  }
}

static enum cb_status run_stats(struct cb_cache *cache, const struct cb_call *call, struct cb_diag *diag) {
  struct cb_cache_listing listing = {0};
  struct cb_text text = {0};
  enum cb_status s = cb_cache_list(cache, &listing, diag);
  int failed = 0;
  if (!s && call->json) s = print_document(stats_json(cache, &listing, &failed), diag);
  if (!s && !call->json) {
    stats_text(&text, cache, &listing);
    s = cb_print(&text, diag);
  }
  cb_text_release(&text);
  cb_cache_listing_release(&listing);
  return s;
}

/* ---- list */

/* One entry of a list. `plan` is "" when it has none, or could not be read. */
struct row {
  struct cb_cache_item item;
  enum cb_cache_outcome outcome;
  struct cb_cache_entry entry;
  char *plan;
};

static enum cb_status read_row(struct row *row, const struct cb_cache *cache, struct cb_diag *diag) {
  struct cb_text plan = {0};
  struct cb_diag why = {0};
  row->outcome = cb_cache_peek(cache, row->item.key, "plan", &row->entry, &why);
  if (row->outcome && why.status == CB_ERR_MEMORY) return fail_outcome(row->outcome, &why, diag);
  const struct cb_cache_section *section = cb_cache_section(&row->entry, "plan");
  cb_text_add_string(&plan, "");
  if (section) cb_text_add_bytes(&plan, section->bytes, (size_t)section->length);
  row->plan = cb_text_detach(&plan);
  return row->plan ? CB_OK : cb_fail_memory(diag, "plan", (unsigned long long)row->entry.bytes);
}

static void release_row(struct row *row) {
  cb_cache_entry_release(&row->entry);
  cb_free(row->plan);
}

static void row_text(struct cb_text *text, const struct row *row) {
  char hex[CB_HASH_HEX], bytes[24], age[24];
  cb_hash_hex(row->item.key, hex);
  cb_human_bytes(bytes, row->item.bytes);
  age_text(age, row->item.used);
  cb_text_add(text, "%.16s %9s %8s  ", hex, bytes, age);
  if (row->outcome)
    cb_text_add(text, "(%s)\n", cb_cache_outcome_name(row->outcome));
  else
    cb_text_add(text, "%-20s %s\n", row->entry.matrix, row->plan);
}

static struct cb_json row_json(const struct row *row, int *failed) {
  char hex[CB_HASH_HEX];
  const struct cb_json json = cb_json_object(failed);
  cb_hash_hex(row->item.key, hex);
  cb_json_set_text(json, "key", hex);
  cb_json_set_text(json, "status", row->outcome ? cb_cache_outcome_name(row->outcome) : "ok");
  cb_json_set_integer(json, "bytes", row->item.bytes);
  cb_json_set_integer(json, "used", row->item.used);
  if (row->outcome) return json;
  cb_json_set_integer(json, "made", row->entry.made);
  cb_json_set_text(json, "matrix", row->entry.matrix);
  cb_json_set_text(json, "target", row->entry.target);
  cb_json_set_text(json, "kernel", row->entry.kernel);
  cb_json_set_text(json, "plan", row->plan);
  return json;
}

static enum cb_status run_list(struct cb_cache *cache, const struct cb_call *call, struct cb_diag *diag) {
  struct cb_cache_listing listing = {0};
  struct cb_text text = {0};
  int failed = 0;
  const struct cb_json document = cb_json_object(&failed), rows = cb_json_array(&failed);
  cb_json_set(document, "entries", rows.json);
  enum cb_status s = cb_cache_list(cache, &listing, diag);
  if (!s && listing.count)
    cb_text_add(&text, "%-16s %9s %8s  %-20s %s\n", "key", "size", "used", "matrix", "plan");
  for (int64_t i = 0; i < listing.count && !s; i++) {
    struct row row = {.item = listing.items[i]};
    s = read_row(&row, cache, diag);
    if (!s && row.outcome != CB_CACHE_ABSENT) { /* else it was removed since */
      row_text(&text, &row);
      cb_json_append(rows, row_json(&row, &failed).json);
    }
    release_row(&row);
  }
  if (!s && call->json) s = print_document(document, diag);
  else json_decref(document.json);
  if (!s && !call->json) s = cb_print(&text, diag);
  cb_text_release(&text);
  cb_cache_listing_release(&listing);
  return s;
}

/* ---- show */

/* Appends section `tag`, and the end of a line where it lacks one. An entry need not have the section: then
 * nothing, and *found is 0. */
static enum cb_status add_section(struct cb_text *text, const struct cb_cache *cache, struct cb_hash key,
                                  const char *tag, int *found, struct cb_diag *diag) {
  struct cb_cache_entry entry;
  struct cb_diag why = {0};
  const enum cb_cache_outcome outcome = cb_cache_peek(cache, key, tag, &entry, &why);
  if (outcome) return fail_outcome(outcome, &why, diag);
  const struct cb_cache_section *section = cb_cache_section(&entry, tag);
  *found = section != NULL;
  if (section && section->length) {
    const char *bytes = section->bytes;
    cb_text_add_bytes(text, bytes, (size_t)section->length);
    if (bytes[section->length - 1] != '\n') cb_text_add_string(text, "\n");
  }
  cb_cache_entry_release(&entry);
  return CB_OK;
}

static enum cb_status add_head(struct cb_text *text, const struct cb_cache *cache, struct cb_hash key,
                               struct cb_diag *diag) {
  char hex[CB_HASH_HEX], bytes[24], age[24];
  struct cb_cache_entry entry;
  struct cb_diag why = {0};
  const enum cb_cache_outcome outcome = cb_cache_peek(cache, key, NULL, &entry, &why);
  if (outcome) return fail_outcome(outcome, &why, diag);
  cb_hash_hex(key, hex);
  cb_human_bytes(bytes, entry.bytes);
  age_text(age, entry.made);
  cb_text_add(text,
              "key       %s\nkernel    %s\nmatrix    %s\ntarget    %s\nfile      %s/%s.entry: %s, made %s ago\n"
              "sections ",
              hex, entry.kernel, entry.matrix, entry.target, cb_cache_directory(cache), hex, bytes, age);
  for (int i = 0; i < entry.count; i++) {
    cb_human_bytes(bytes, entry.sections[i].length);
    cb_text_add(text, "%s %s %s", i ? "," : "", entry.sections[i].tag, bytes);
  }
  cb_text_add_string(text, "\n");
  cb_cache_entry_release(&entry);
  return CB_OK;
}

/* The entry's fields, and in which the nearest one of the same pattern differs: why either is no hit for the other. */
static enum cb_status add_fields(struct cb_text *text, const struct cb_cache *cache, struct cb_hash key,
                                 struct cb_diag *diag) {
  struct cb_text fields = {0}, how = {0};
  struct cb_hash nearest;
  char hex[CB_HASH_HEX];
  int found = 0;
  const enum cb_status s = add_section(&fields, cache, key, "key", &found, diag);
  if (!s && found && !fields.failed) {
    cb_text_add(text, "\n%s", cb_text_string(&fields));
    if (cb_cache_nearest(cache, key, fields.bytes, fields.length, &nearest, &how)) {
      cb_hash_hex(nearest, hex);
      cb_text_add(text, "nearest   %s: %s\n", hex, cb_text_string(&how));
    }
  }
  text->failed |= fields.failed;
  cb_text_release(&fields);
  cb_text_release(&how);
  return s;
}

static enum cb_status add_everything(struct cb_text *text, const struct cb_cache *cache, struct cb_hash key,
                                     struct cb_diag *diag) {
  static const char *const tags[] = {"plan", "json", "source"};
  enum cb_status s = add_head(text, cache, key, diag);
  if (!s) s = add_fields(text, cache, key, diag);
  for (int i = 0; i < 3 && !s; i++) {
    int unused;
    cb_text_add_string(text, "\n");
    s = add_section(text, cache, key, tags[i], &unused, diag);
  }
  return s;
}

static enum cb_status run_show(struct cb_cache *cache, const struct cb_call *call, struct cb_diag *diag) {
  struct cb_hash key;
  struct cb_text text = {0};
  const char *tag = call->json ? "json" : call->section;
  int found = 1;
  if (call->json && call->section)
    return cb_fail(diag, CB_ERR_ARGUMENT, "one part of an entry at a time: '--json' or '--%s'",
                   call->section);
  if (!is_on(cache)) return cb_fail(diag, CB_ERR_IO, "there is no cache: %s", cb_cache_remark(cache));
  enum cb_status s = cb_cache_find(cache, call->file, &key, diag);
  if (!s)
    s = tag ? add_section(&text, cache, key, tag, &found, diag) : add_everything(&text, cache, key, diag);
  if (!s && !found) s = cb_fail(diag, CB_ERR_IO, "entry '%s' has no section '%s'", call->file, tag);
  if (!s) s = cb_print(&text, diag);
  cb_text_release(&text);
  return s;
}

/* ---- verify */

/* How many entries came out how. */
static enum cb_status verify_verdict(const int64_t counts[CB_CACHE_OUTCOMES], int64_t checked,
                                     struct cb_diag *diag) {
  const int64_t bad = counts[CB_CACHE_DAMAGED] + counts[CB_CACHE_FOREIGN];
  if (bad)
    return cb_fail(diag, CB_ERR_WRONG, "%lld of %lld entries are damaged or foreign; they are never used",
                   (long long)bad, (long long)checked);
  if (counts[CB_CACHE_UNREADABLE])
    return cb_fail(diag, CB_ERR_IO, "%lld of %lld entries could not be read",
                   (long long)counts[CB_CACHE_UNREADABLE], (long long)checked);
  return CB_OK;
}

static enum cb_status run_verify(struct cb_cache *cache, const struct cb_call *call, struct cb_diag *diag) {
  struct cb_cache_listing listing = {0};
  struct cb_text text = {0};
  int64_t counts[CB_CACHE_OUTCOMES] = {0}, checked = 0;
  enum cb_status s = cb_cache_list(cache, &listing, diag);
  cb_progress_stage("checking '%s'", cb_cache_directory(cache));
  for (int64_t i = 0; i < listing.count; i++) {
    struct cb_diag why = {0};
    cb_progress_report(NULL, NULL, i, listing.count);
    const enum cb_cache_outcome outcome = cb_cache_check(cache, listing.items[i].key, &why);
    counts[outcome]++;
    checked += outcome != CB_CACHE_ABSENT; /* removed since */
    if (outcome && outcome != CB_CACHE_ABSENT) cb_text_add(&text, "%s\n", why.message);
  }
  cb_text_add(&text, "%lld of %lld entries are whole\n", (long long)counts[CB_CACHE_HIT], (long long)checked);
  if (!s && !call->quiet) s = cb_print(&text, diag);
  if (!s) s = verify_verdict(counts, checked, diag);
  cb_text_release(&text);
  cb_cache_listing_release(&listing);
  return s;
}

/* ---- prune and clear */

static enum cb_status prune_to(struct cb_cache *cache, int64_t limit, const struct cb_call *call,
                               struct cb_diag *diag) {
  struct cb_cache_removal removal = {0};
  struct cb_text text = {0};
  char bytes[24];
  const enum cb_status pruned = cb_cache_prune(cache, limit, &removal, diag);
  cb_human_bytes(bytes, removal.bytes);
  cb_text_add(&text, "removed %lld %s, %s", (long long)removal.entries,
              removal.entries == 1 ? "entry" : "entries", bytes);
  if (removal.drafts) cb_text_add(&text, ", and %lld unfinished", (long long)removal.drafts);
  cb_text_add_string(&text, "\n");
  struct cb_diag unprinted = {0};
  const enum cb_status printed = call->quiet ? CB_OK : cb_print(&text, pruned ? &unprinted : diag);
  cb_text_release(&text);
  return pruned ? pruned : printed;
}

static enum cb_status run_prune(struct cb_cache *cache, const struct cb_call *call, struct cb_diag *diag) {
  return prune_to(cache, call->limit < 0 ? cb_cache_limit(cache) : call->limit, call, diag);
}

static enum cb_status run_clear(struct cb_cache *cache, const struct cb_call *call, struct cb_diag *diag) {
  return prune_to(cache, 0, call, diag);
}

/* ---- which */

static const struct action action_table[] = {
    {.name = "stats", .takes_json = 1, .run = run_stats},
    {.name = "list", .takes_json = 1, .run = run_list},
    {.name = "show", .takes_key = 1, .takes_section = 1, .takes_json = 1, .run = run_show},
    {.name = "verify", .run = run_verify},
    {.name = "fill", .takes_files = "the file of a matrix", .takes_kernels = 1, .makes = 1, .run = cb_cache_run_fill},
    {.name = "gpu", .run = cb_cache_run_gpu},
    {.name = "export", .takes_files = "the name of an archive", .run = cb_cache_run_export},
    {.name = "import", .takes_files = "an archive", .makes = 1, .run = cb_cache_run_import},
    {.name = "prune", .takes_limit = 1, .run = run_prune},
    {.name = "clear", .run = run_clear},
};
enum { ACTIONS = sizeof action_table / sizeof *action_table };

static enum cb_status find_action(const struct action **action, const char *name, struct cb_diag *diag) {
  const char *names[ACTIONS + 1] = {NULL};
  if (!name)
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "'cache' needs one of stats, list, show, verify, fill, gpu, export, import, prune, clear; see 'cbgen help cache'");
  for (int i = 0; i < ACTIONS; i++) {
    *action = &action_table[i];
    names[i] = action_table[i].name;
    if (!strcmp(names[i], name)) return CB_OK;
  }
  const char *nearest = cb_nearest(name, names);
  if (nearest)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'cache' does not know '%s'; did you mean '%s'", name, nearest);
  return cb_fail(diag, CB_ERR_ARGUMENT, "'cache' does not know '%s'; see 'cbgen help cache'", name);
}

static enum cb_status check_call(const struct action *action, const struct cb_call *call,
                                 struct cb_diag *diag) {
  const char *name = action->name;
  if (action->takes_key && !call->file)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'cache %s' needs a key; 'cbgen cache list' shows them", name);
  if (action->takes_files && !call->file)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'cache %s' needs %s", name, action->takes_files);
  if (!action->takes_key && !action->takes_files && call->file)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'cache %s' takes no '%s'", name, call->file);
  if (!action->takes_files && call->more_count)
    return cb_fail(diag, CB_ERR_ARGUMENT, "one key at a time: '%s' or '%s'", call->file, call->more[0]);
  static const char *const of_kernels[] = {"arch", "gpu", "transpose"};
  for (int i = 0; i < 3 && !action->takes_kernels; i++)
    if (cb_call_has(call, of_kernels[i]))
      return cb_fail(diag, CB_ERR_ARGUMENT, "'--%s' means nothing to 'cache %s'", of_kernels[i], name);
  if (!action->takes_limit && call->limit >= 0)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'--limit' means nothing to 'cache %s'", name);
  if (!action->takes_section && call->section)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'--%s' means nothing to 'cache %s'", call->section, name);
  if (!action->takes_json && call->json)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'--json' means nothing to 'cache %s'", name);
  return CB_OK;
}

static enum cb_status run_cache(const struct cb_call *call, struct cb_diag *diag) {
  const struct action *action;
  struct cb_cache *cache = NULL;
  enum cb_status s = find_action(&action, call->action, diag);
  if (!s) s = check_call(action, call, diag);
  if (s) return s;
  const struct cb_cache_options options = {.existing = !action->makes};
  s = cb_cache_open(&cache, &options, diag);
  if (s == CB_ERR_ARGUMENT && is_on(cache)) { /* the library goes on, too */
    cb_say_message(diag);
    s = CB_OK;
  }
  if (!s) s = action->run(cache, call, diag);
  cb_cache_close(cache);
  return s;
}

const struct cb_verb cb_verb_cache = {
    .name = "cache",
    .arguments = "stats|list|show KEY|verify|prune|clear|fill FILE…|gpu|export TAR|import TAR",
    .summary = "see, check, fill and empty the cache of compiled kernels",
    .details = "  stats   where it is, how many entries and bytes    verify  reads all entries, reports damage\n"
               "  list    an entry per line, used last first         prune   removes what was used longest ago\n"
               "  show    an entry's key, plan, as JSON too, source  clear   removes all entries\n"
               "  fill    makes matrices' kernels, without a GPU     gpu     this machine's GPU, for 'fill --gpu'\n"
               "  export  entries into NAME.tar, .tar.gz, .tar.zst   import  entries out of such an archive\n"
               "KEY is the beginning of an entry's key, or a kernel's name in a profiler, 'cbgen_DIGITS…'. The\n"
               "cache is in CBGEN_CACHE_DIR, else XDG_CACHE_HOME/cbgen, else ~/.cache/cbgen.\n",
    .example = "cbgen cache show 5f3a --source",
    .takes = CB_TAKES_CACHE | CB_TAKES_JSON | CB_TAKES_ARCHES,
    .run = run_cache,
};
