// SPDX-License-Identifier: Apache-2.0
/* What keys were made from, compared: cb_cache_fields has the text of it. */
#include "runtime/cache/parts.h"

#include <stdint.h>
#include <string.h>

/* One line, cut at its first '='. */
struct field {
  const char *name, *value;
  int name_length, value_length;
};

/* The line at *at, which moves behind it; 0: there is none left. Lines without '=' have no value and all their text as
 * their name. */
static int next_field(struct field *field, const char **at, const char *end) {
  if (*at >= end) return 0;
  const char *line = *at, *stop = memchr(line, '\n', (size_t)(end - line));
  if (!stop) stop = end;
  const char *equals = memchr(line, '=', (size_t)(stop - line));
  field->name = line;
  field->name_length = (int)((equals ? equals : stop) - line);
  field->value = equals ? equals + 1 : stop;
  field->value_length = (int)(stop - field->value);
  *at = stop < end ? stop + 1 : end;
  return 1;
}

static int find_field(struct field *found, const char *text, size_t length, const char *name, int name_length) {
  const char *at = text;
  while (next_field(found, &at, text + length))
    if (found->name_length == name_length && !memcmp(found->name, name, (size_t)name_length)) return 1;
  return 0;
}

static int same_value(const struct field *a, const struct field *b) {
  return a->value_length == b->value_length && !memcmp(a->value, b->value, (size_t)a->value_length);
}

int cb_cache_compare_fields(const char *a, size_t a_length, const char *b, size_t b_length, cb_cache_field_taker *take,
                            void *user) {
  struct field one, other;
  int count = 0;
  for (const char *at = a; next_field(&one, &at, a + a_length);) {
    const int found = find_field(&other, b, b_length, one.name, one.name_length);
    if (found && same_value(&one, &other)) continue;
    count++;
    if (take)
      take(user, one.name, one.name_length, one.value, one.value_length, found ? other.value : NULL,
           found ? other.value_length : 0);
  }
  for (const char *at = b; next_field(&one, &at, b + b_length);) {
    if (find_field(&other, a, a_length, one.name, one.name_length)) continue;
    count++;
    if (take) take(user, one.name, one.name_length, NULL, 0, one.value, one.value_length);
  }
  return count;
}

/* ---- the nearest entry */

static int same_field(const char *a, size_t a_length, const char *b, size_t b_length, const char *name) {
  struct field one, other;
  const int length = (int)strlen(name);
  return find_field(&one, a, a_length, name, length) && find_field(&other, b, b_length, name, length) &&
         same_value(&one, &other);
}

static void say_field(void *user, const char *name, int name_length, const char *a, int a_length, const char *b,
                      int b_length) {
  struct cb_text *text = user;
  cb_text_add(text, "%s%.*s: %.*s here, %.*s there", text->length ? "; " : "", name_length, name, a ? a_length : 4,
              a ? a : "none", b ? b_length : 4, b ? b : "none");
}

/* What is looked for, and the best so far. */
struct search {
  const char *fields;
  size_t length;
  int least; /* 0: none found */
  struct cb_hash nearest;
  struct cb_text *how;
};

static void consider(struct search *search, struct cb_hash key, const char *theirs, size_t length) {
  if (!same_field(search->fields, search->length, theirs, length, "kind") ||
      !same_field(search->fields, search->length, theirs, length, "pattern"))
    return;
  const int differ = cb_cache_compare_fields(search->fields, search->length, theirs, length, NULL, NULL);
  if (!differ || (search->least && differ >= search->least)) return;
  search->least = differ;
  search->nearest = key;
  cb_text_release(search->how);
  cb_cache_compare_fields(search->fields, search->length, theirs, length, say_field, search->how);
}

int cb_cache_nearest(const struct cb_cache *cache, struct cb_hash key, const char *fields, size_t length,
                     struct cb_hash *nearest, struct cb_text *how) {
  struct search search = {.fields = fields, .length = length, .how = how};
  struct cb_cache_listing listing;
  if (cb_cache_list(cache, &listing, NULL)) return 0;
  for (int64_t i = 0; i < listing.count && i < CB_CACHE_NEAREST; i++) {
    const struct cb_hash other = listing.items[i].key;
    struct cb_cache_entry entry;
    if ((other.high == key.high && other.low == key.low) || cb_cache_peek(cache, other, "key", &entry, NULL)) continue;
    const struct cb_cache_section *section = cb_cache_section(&entry, "key");
    if (section) consider(&search, other, section->bytes, (size_t)section->length);
    cb_cache_entry_release(&entry);
  }
  cb_cache_listing_release(&listing);
  *nearest = search.nearest;
  return how->failed ? 0 : search.least;
}
