// SPDX-License-Identifier: Apache-2.0
/* Keys of the cache: made from tagged fields, and found again from what a person types. */
#include "runtime/cache/parts.h"

#include "base/fingerprint.h"

#include <stdio.h>
#include <string.h>

/* Where a field goes: into the hash, or into the text that says what was hashed. */
struct fields {
  struct cb_hash *hash; /* NULL: none wanted */
  struct cb_text *text; /* likewise */
};

/* A line of the text; the group tells option "values" from the hash of the values. */
static void note(const struct fields *fields, const char *group, const char *name, const char *value) {
  char printable[256];
  if (!fields->text) return;
  cb_escape(printable, sizeof printable, value, "");
  cb_text_add(fields->text, "%s%s=%s\n", group, name, printable);
}

static void fold_text(const struct fields *fields, const char *group, const char *tag, const char *text) {
  if (fields->hash) cb_hash_field(fields->hash, tag, text ? text : "", text ? strlen(text) : 0);
  note(fields, group, tag, text ? text : "");
}

static void fold_number(const struct fields *fields, const char *group, const char *tag, int64_t number) {
  char digits[24];
  if (fields->hash) cb_hash_number(fields->hash, tag, (uint64_t)number);
  snprintf(digits, sizeof digits, "%lld", (long long)number);
  note(fields, group, tag, digits);
}

static void fold_hash(const struct fields *fields, const char *tag, const struct cb_hash *hash) {
  char hex[CB_HASH_HEX];
  if (fields->hash) cb_hash_field(fields->hash, tag, hash, sizeof *hash);
  cb_hash_hex(*hash, hex);
  note(fields, "", tag, hex);
}

static void fold_option(const struct fields *fields, const struct cb_option *option, int64_t number) {
  struct cb_text value = {0};
  if (fields->hash) cb_hash_number(fields->hash, option->name, (uint64_t)number);
  if (!fields->text) return;
  cb_option_print(&value, option, number);
  note(fields, "option ", option->name, cb_text_string(&value));
  fields->text->failed |= value.failed;
  cb_text_release(&value);
}

/* By the tables, so that a new option changes keys without a line here. */
static void fold_options(const struct fields *fields, const struct cb_options *options) {
  const struct cb_option *option;
  fold_text(fields, "option ", "recipe", options->recipe);
  if (options->epilogue && *options->epilogue) fold_text(fields, "option ", "epilogue", options->epilogue);
  for (int i = 0; (option = cb_option_at(i)); i++)
    if (!option->is_text) fold_option(fields, option, cb_option_value(options, i));
}

static void fold_target(const struct fields *fields, const struct cb_target *target) {
  static const char group[] = "target ";
  fold_text(fields, group, "arch", target->arch);
  fold_text(fields, group, "model", target->model);
  fold_number(fields, group, "multiprocessors", target->multiprocessors);
  fold_number(fields, group, "shared_per_block", target->shared_per_block);
  fold_number(fields, group, "shared_per_sm", target->shared_per_sm);
  fold_number(fields, group, "l2_bytes", target->l2_bytes);
  fold_number(fields, group, "read_gb_per_s", target->read_gb_per_s);
  fold_number(fields, group, "sectors_g_per_s", target->sectors_g_per_s);
  fold_number(fields, group, "launch_ns", target->launch_ns);
  fold_number(fields, group, "l2_gb_per_s", target->l2_gb_per_s);
  fold_number(fields, group, "latency_ns", target->latency_ns);
}

static void fold(const struct fields *fields, const struct cb_cache_subject *subject) {
  fold_text(fields, "", "version", CB_VERSION);
  fold_text(fields, "", "build", cb_build_fingerprint);
  fold_text(fields, "", "kind", subject->kind);
  fold_options(fields, subject->options);
  fold_target(fields, subject->target);
  fold_number(fields, "", "rows", subject->rows);
  fold_number(fields, "", "cols", subject->cols);
  fold_number(fields, "", "nnz", subject->nnz);
  fold_hash(fields, "pattern", &subject->pattern);
  if (subject->values) fold_hash(fields, "values", subject->values);
  fold_number(fields, "", "nvrtc_major", subject->nvrtc_major);
  fold_number(fields, "", "nvrtc_minor", subject->nvrtc_minor);
  for (int i = 0; i < subject->extras_count; i++)
    fold_number(fields, "", subject->extras[i].name, subject->extras[i].number);
}

struct cb_hash cb_cache_key(const struct cb_cache_subject *subject) {
  struct cb_hash key = {0, 0};
  fold(&(struct fields){.hash = &key}, subject);
  return key;
}

void cb_cache_fields(struct cb_text *text, const struct cb_cache_subject *subject) {
  fold(&(struct fields){.text = text}, subject);
}

/* ---- keys as text */

static int is_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static int is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The digits of "0123ab", or of a kernel's name as a profiler shows it: "cbgen_0123ab_spmv_1(double const*)".
 */
static int take_digits(char digits[CB_HASH_HEX], const char *text) {
  const int kernel = !strncmp(text, "cbgen_", 6);
  if (kernel) text += 6;
  int count = 0;
  for (; is_digit(text[count]) && count < CB_HASH_HEX - 1; count++)
    digits[count] = (char)(text[count] >= 'A' && text[count] <= 'F' ? text[count] - 'A' + 'a' : text[count]);
  digits[count] = 0;
  return count && (kernel ? !is_word(text[count]) : !text[count]);
}

/* How many keys begin with the digits; one of them. */
static int64_t find_key(const struct cb_cache_listing *listing, const char *digits, struct cb_hash *key) {
  char hex[CB_HASH_HEX];
  int64_t found = 0;
  for (int64_t i = 0; i < listing->count; i++) {
    cb_hash_hex(listing->items[i].key, hex);
    if (strncmp(hex, digits, strlen(digits))) continue;
    *key = listing->items[i].key;
    found++;
  }
  return found;
}

/* Whether an entry's kernels are named so; of several, the one used last, which stands first. */
static int64_t find_kernel(const struct cb_cache *cache, const struct cb_cache_listing *listing,
                           const char *digits, struct cb_hash *key) {
  struct cb_cache_entry entry;
  int found = 0;
  for (int64_t i = 0; i < listing->count && !found; i++) {
    if (cb_cache_peek(cache, listing->items[i].key, NULL, &entry, NULL)) continue;
    found = !strncmp(entry.kernel, "cbgen_", 6) && !strncmp(entry.kernel + 6, digits, strlen(digits));
    *key = entry.key;
    cb_cache_entry_release(&entry);
  }
  return found;
}

enum cb_status cb_cache_find(const struct cb_cache *cache, const char *text, struct cb_hash *key,
                             struct cb_diag *diag) {
  char digits[CB_HASH_HEX];
  struct cb_cache_listing listing;
  if (!take_digits(digits, text))
    return cb_fail(
        diag, CB_ERR_ARGUMENT,
        "'%s' is no key: it takes up to 32 hexadecimal digits, or the name of a kernel, 'cbgen_DIGITS…'",
        text);
  const enum cb_status s = cb_cache_list(cache, &listing, diag);
  if (s) return s;
  int64_t found = find_key(&listing, digits, key);
  if (!found) found = find_kernel(cache, &listing, digits, key);
  cb_cache_listing_release(&listing);
  if (!found)
    return cb_fail(diag, CB_ERR_IO, "no entry '%s' in '%s'; 'cbgen cache list' shows what there is", digits,
                   cb_cache_directory(cache));
  if (found > 1)
    return cb_fail(diag, CB_ERR_IO, "'%s' begins the keys of %lld entries: give more digits", digits,
                   (long long)found);
  return CB_OK;
}
