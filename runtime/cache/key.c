// SPDX-License-Identifier: Apache-2.0
/* Keys of the cache: made from tagged fields, and found again from what a person types. */
#include "runtime/cache/parts.h"

#include "base/fingerprint.h"

#include <stdio.h>
#include <string.h>

static void fold_text(struct cb_hash *key, const char *tag, const char *text) {
  cb_hash_field(key, tag, text ? text : "", text ? strlen(text) : 0);
}

/* By the tables, so that a new option changes keys without a line here. */
static void fold_options(struct cb_hash *key, const struct cb_options *options) {
  const struct cb_option *option;
  fold_text(key, "recipe", options->recipe);
  for (int i = 0; (option = cb_option_at(i)); i++)
    if (!option->is_text) cb_hash_number(key, option->name, (uint64_t)cb_option_value(options, i));
}

static void fold_target(struct cb_hash *key, const struct cb_target *target) {
  fold_text(key, "arch", target->arch);
  fold_text(key, "model", target->model);
  cb_hash_number(key, "multiprocessors", (uint64_t)target->multiprocessors);
  cb_hash_number(key, "shared_per_block", (uint64_t)target->shared_per_block);
  cb_hash_number(key, "shared_per_sm", (uint64_t)target->shared_per_sm);
  cb_hash_number(key, "l2_bytes", (uint64_t)target->l2_bytes);
  cb_hash_number(key, "read_gb_per_s", (uint64_t)target->read_gb_per_s);
  cb_hash_number(key, "sectors_g_per_s", (uint64_t)target->sectors_g_per_s);
  cb_hash_number(key, "launch_ns", (uint64_t)target->launch_ns);
  cb_hash_number(key, "l2_gb_per_s", (uint64_t)target->l2_gb_per_s);
  cb_hash_number(key, "latency_ns", (uint64_t)target->latency_ns);
}

struct cb_hash cb_cache_key(const struct cb_cache_subject *subject) {
  struct cb_hash key = {0, 0};
  fold_text(&key, "version", CBGEN_VERSION);
  fold_text(&key, "build", cb_build_fingerprint);
  fold_text(&key, "kind", subject->kind);
  fold_options(&key, subject->options);
  fold_target(&key, subject->target);
  cb_hash_number(&key, "rows", (uint64_t)subject->rows);
  cb_hash_number(&key, "cols", (uint64_t)subject->cols);
  cb_hash_number(&key, "nnz", (uint64_t)subject->nnz);
  cb_hash_field(&key, "pattern", &subject->pattern, sizeof subject->pattern);
  if (subject->values) cb_hash_field(&key, "values", subject->values, sizeof *subject->values);
  cb_hash_number(&key, "nvrtc_major", (uint64_t)subject->nvrtc_major);
  cb_hash_number(&key, "nvrtc_minor", (uint64_t)subject->nvrtc_minor);
  return key;
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
  if (!found) return cb_fail(diag, CB_ERR_IO, "no entry '%s' in '%s'", digits, cb_cache_directory(cache));
  if (found > 1)
    return cb_fail(diag, CB_ERR_IO, "'%s' begins the keys of %lld entries: give more digits", digits,
                   (long long)found);
  return CB_OK;
}
