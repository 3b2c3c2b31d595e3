// SPDX-License-Identifier: Apache-2.0
/* The cache of one process on a sound disk: entries come back as they went in or not at all, whatever was done to
 * their files; which directories are trusted; what is evicted. */
#include "tests/cache_support.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

static int is_root(void) {
  return geteuid() == 0;
}

/* ---- entries */

static void test_round_trip(void **state) {
  (void)state;
  static const int64_t lengths[] = {0, 1, 255, 256, 257, 70000, 3 << 20, LARGE};
  const char *directory = fresh("round");
  struct cb_cache *cache = open_cache(directory, 0);
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    const struct cb_hash key = key_of(i);
    assert_outcome(get(cache, key, lengths[i]), CB_CACHE_ABSENT);
    assert_outcome(put(cache, key, lengths[i]), CB_CACHE_STORED);
    assert_outcome(get(cache, key, lengths[i]), CB_CACHE_HIT);
    assert_outcome(put(cache, key, lengths[i]), CB_CACHE_PRESENT);
    assert_outcome(cb_cache_check(cache, key, NULL), CB_CACHE_HIT);
  }
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
    assert_outcome(get(cache, key_of(i), lengths[i]), CB_CACHE_HIT);
  const struct cb_cache_counts counts = cb_cache_counts(cache);
  assert_int_equal(counts.of[CB_CACHE_HIT], 16);
  assert_int_equal(counts.of[CB_CACHE_ABSENT], 8);
  assert_int_equal(counts.of[CB_CACHE_STORED], 8);
  assert_int_equal(counts.of[CB_CACHE_PRESENT], 8);
  assert_int_equal(counts.evicted, 0);
  assert_int_equal(count_files(directory, ".entry"), 8);
  assert_int_equal(count_files(directory, ""), 8);
  cb_cache_close(cache);
}

static void test_sections_are_aligned(void **state) {
  (void)state;
  struct cb_cache *cache = open_cache(fresh("aligned"), 0);
  static const int64_t lengths[] = {77, LARGE};
  for (int i = 0; i < 2; i++) {
    struct cb_cache_entry entry;
    put(cache, key_of(1), lengths[i]);
    assert_outcome(cb_cache_get(cache, key_of(1), &entry, NULL), CB_CACHE_HIT);
    for (int k = 0; k < entry.count; k++)
      assert_int_equal((uintptr_t)entry.sections[k].bytes % CB_CACHE_ALIGN, 0);
    cb_cache_entry_release(&entry);
  }
  cb_cache_close(cache);
}

/* A reader keeps what it has when the entry is replaced, removed, and the cache closed. */
static void test_entry_outlives_everything(void **state) {
  (void)state;
  static const int64_t lengths[] = {5000, LARGE};
  for (int i = 0; i < 2; i++) {
    struct cb_cache *cache = open_cache(fresh("outlives"), 0);
    struct cb_cache_entry entry;
    const struct cb_hash key = key_of(1);
    put(cache, key, lengths[i]);
    assert_outcome(cb_cache_get(cache, key, &entry, NULL), CB_CACHE_HIT);
    assert_outcome(put(cache, key, lengths[i] + 1), CB_CACHE_STORED); /* other contents: replaced */
    assert_outcome(get(cache, key, lengths[i] + 1), CB_CACHE_HIT);
    struct cb_diag diag = {0};
    assert_ok(cb_cache_remove(cache, key, &diag));
    assert_outcome(get(cache, key, 0), CB_CACHE_ABSENT);
    assert_ok(cb_cache_remove(cache, key, &diag));
    cb_cache_close(cache);
    assert_true(is_right(&entry, key, lengths[i]));
    cb_cache_entry_release(&entry);
  }
}

static void test_labels(void **state) {
  (void)state;
  struct cb_cache *cache = open_cache(fresh("labels"), 0);
  struct cb_cache_entry entry;
  char name[200];
  memset(name, 'a', sizeof name);
  memcpy(name + 62, "\xc3\xa4", 2); /* an ä across the cut */
  name[sizeof name - 1] = 0;
  const struct cb_cache_label label = {name, "sm_90 \x1b[31m\n\x7f", NULL};
  assert_outcome(cb_cache_put(cache, key_of(1), &label, NULL, 0, NULL), CB_CACHE_STORED);
  assert_outcome(cb_cache_get(cache, key_of(1), &entry, NULL), CB_CACHE_HIT);
  assert_int_equal(strlen(entry.matrix), 62);
  assert_string_equal(entry.target, "sm_90 _[31m__");
  assert_true(entry.made >= (int64_t)time(NULL) - 60 && entry.made <= (int64_t)time(NULL));
  cb_cache_entry_release(&entry);
  assert_outcome(cb_cache_put(cache, key_of(2), NULL, NULL, 0, NULL), CB_CACHE_STORED);
  assert_outcome(cb_cache_get(cache, key_of(2), &entry, NULL), CB_CACHE_HIT);
  assert_string_equal(entry.matrix, "");
  cb_cache_entry_release(&entry);
  cb_cache_close(cache);
}

static void test_what_cannot_be_put(void **state) {
  (void)state;
  const char *directory = fresh("cannot");
  struct cb_cache *cache = open_cache(directory, 10000);
  struct cb_cache_section sections[CB_CACHE_SECTIONS + 1];
  for (int i = 0; i <= CB_CACHE_SECTIONS; i++) {
    sections[i] = (struct cb_cache_section){"", "x", 1};
    snprintf(sections[i].tag, CB_CACHE_TAG, "section%u", (unsigned)i % 100u);
  }
  assert_outcome(cb_cache_put(cache, key_of(1), NULL, sections, CB_CACHE_SECTIONS + 1, NULL),
                 CB_CACHE_UNWRITABLE);
  assert_outcome(cb_cache_put(cache, key_of(1), NULL, sections, -1, NULL), CB_CACHE_UNWRITABLE);
  sections[0].length = -1;
  assert_outcome(cb_cache_put(cache, key_of(1), NULL, sections, 1, NULL), CB_CACHE_UNWRITABLE);
  sections[0].length = 1;
  sections[0].bytes = NULL;
  assert_outcome(cb_cache_put(cache, key_of(1), NULL, sections, 1, NULL), CB_CACHE_UNWRITABLE);
  sections[0].bytes = "x";
  sections[0].tag[0] = 0;
  assert_outcome(cb_cache_put(cache, key_of(1), NULL, sections, 1, NULL), CB_CACHE_UNWRITABLE);
  memset(sections[0].tag, 'x', CB_CACHE_TAG);
  assert_outcome(cb_cache_put(cache, key_of(1), NULL, sections, 1, NULL), CB_CACHE_UNWRITABLE);
  memcpy(sections[0].tag, sections[1].tag, CB_CACHE_TAG);
  assert_outcome(cb_cache_put(cache, key_of(1), NULL, sections, 2, NULL), CB_CACHE_UNWRITABLE);
  assert_outcome(put(cache, key_of(1), 10000), CB_CACHE_TOO_LARGE);
  assert_int_equal(count_files(directory, ""), 0);
  assert_outcome(cb_cache_put(cache, key_of(1), NULL, sections + 1, CB_CACHE_SECTIONS, NULL),
                 CB_CACHE_STORED);
  cb_cache_close(cache);
}

/* The grammar of cache.h, read by someone else. */
static void test_format(void **state) {
  (void)state;
  const char *directory = fresh("format");
  struct cb_cache *cache = open_cache(directory, 0);
  const struct cb_hash key = key_of(5);
  put(cache, key, 100);
  cb_cache_close(cache);
  size_t length;
  char *bytes = slurp(path_of(directory, key), &length);
  uint32_t format, count;
  int64_t size, offset, section;
  memcpy(&format, bytes + 8, 4);
  memcpy(&count, bytes + 12, 4);
  memcpy(&size, bytes + 32, 8);
  assert_memory_equal(bytes, "CBGENTRY", 8);
  assert_int_equal(format, 2);
  assert_int_equal(count, 3);
  assert_memory_equal(bytes + 16, &key, 16);
  assert_int_equal(size, length);
  assert_string_equal(bytes + 48, "a matrix");
  assert_string_equal(bytes + 112, "sm_90");
  assert_string_equal(bytes + 176, "plan");
  assert_string_equal(bytes + 176 + 2 * 48, "index");
  memcpy(&offset, bytes + 176 + 2 * 48 + 16, 8);
  memcpy(&section, bytes + 176 + 2 * 48 + 24, 8);
  assert_int_equal(offset, 1024 + 256);
  assert_int_equal(section, 100);
  assert_int_equal(length, 1024 + 256 + 100);
  assert_memory_equal(bytes + 1024, "(spmv ", 6);
  const struct cb_hash check = cb_hash_bytes(bytes, 1008);
  assert_memory_equal(bytes + 1008, &check, 16);
  free(bytes);
}

static void test_peek(void **state) {
  (void)state;
  struct cb_cache *cache = open_cache(fresh("peek"), 0);
  struct cb_cache_entry entry;
  const struct cb_hash key = key_of(1);
  put(cache, key, LARGE);
  assert_outcome(cb_cache_peek(cache, key_of(2), NULL, &entry, NULL), CB_CACHE_ABSENT);
  assert_outcome(cb_cache_peek(cache, key, NULL, &entry, NULL), CB_CACHE_HIT);
  assert_int_equal(entry.count, 3);
  assert_null(entry.sections[0].bytes);
  assert_int_equal(cb_cache_section(&entry, "index")->length, LARGE);
  assert_null(cb_cache_section(&entry, "cubin"));
  cb_cache_entry_release(&entry);
  assert_outcome(cb_cache_peek(cache, key, "plan", &entry, NULL), CB_CACHE_HIT);
  assert_memory_equal(cb_cache_section(&entry, "plan")->bytes, "(spmv (test", 11);
  assert_null(cb_cache_section(&entry, "index")->bytes);
  cb_cache_entry_release(&entry);
  assert_outcome(cb_cache_peek(cache, key, "cubin", &entry, NULL), CB_CACHE_HIT);
  cb_cache_entry_release(&entry);
  assert_int_equal(cb_cache_counts(cache).of[CB_CACHE_HIT], 0); /* no use */
  cb_cache_close(cache);
}

/* ---- damage */

struct damage {
  const char *path;
  struct cb_cache *cache;
  struct cb_hash key;
  int64_t index_bytes;
};

/* The file as it is now is a miss, which removes it; a put brings the entry back. */
static void expect_miss(const struct damage *damage, const char *what, int64_t where) {
  const enum cb_cache_outcome check = cb_cache_check(damage->cache, damage->key, NULL),
                              outcome = get(damage->cache, damage->key, damage->index_bytes);
  const int other = where >= 8 && where < 12; /* the number of the format */
  const enum cb_cache_outcome expected = other ? CB_CACHE_OTHER_FORMAT : CB_CACHE_DAMAGED;
  if (outcome != expected || check != expected)
    fail_msg("%s %lld: %s, and a check: %s", what, (long long)where, cb_cache_outcome_name(outcome),
             cb_cache_outcome_name(check));
  if (!other && !access(damage->path, F_OK))
    fail_msg("%s %lld: the damaged entry stays", what, (long long)where);
}

static void test_every_bit_counts(void **state) {
  (void)state;
  const char *directory = fresh("bits");
  struct damage damage = {.cache = open_cache(directory, 0), .key = key_of(3), .index_bytes = 300};
  put(damage.cache, damage.key, damage.index_bytes);
  damage.path = path_of(directory, damage.key);
  size_t length;
  char *bytes = slurp(damage.path, &length);
  for (size_t i = 0; i < length; i++)
    for (int bit = 0; bit < 8; bit += i < 1024 ? 1 : 3) {
      bytes[i] ^= (char)(1 << bit);
      spit(damage.path, bytes, length);
      bytes[i] ^= (char)(1 << bit);
      expect_miss(&damage, "a flipped bit in byte", (int64_t)i);
    }
  spit(damage.path, bytes, length);
  assert_outcome(get(damage.cache, damage.key, 300), CB_CACHE_HIT);
  free(bytes);
  cb_cache_close(damage.cache);
}

static void test_every_length_counts(void **state) {
  (void)state;
  const char *directory = fresh("lengths");
  struct damage damage = {.cache = open_cache(directory, 0), .key = key_of(3), .index_bytes = 300};
  put(damage.cache, damage.key, damage.index_bytes);
  damage.path = path_of(directory, damage.key);
  size_t length;
  char *bytes = slurp(damage.path, &length);
  bytes[length] = 0;
  for (size_t cut = 0; cut <= length + 1; cut++) {
    if (cut == length) continue;
    spit(damage.path, bytes, cut);
    expect_miss(&damage, "cut after", (int64_t)cut + 1000000);
  }
  free(bytes);
  cb_cache_close(damage.cache);
}

/* Entries that are mapped are checked as well, in every window. */
static void test_damage_to_large_entries(void **state) {
  (void)state;
  static const int64_t places[] = {
      0, 1023, 1024, 1300, 1024 + 256, 2 << 20, 16777216 + 1279, 16777216 + 1280, LARGE, LARGE + 1024 + 255};
  const char *directory = fresh("large");
  struct damage damage = {.cache = open_cache(directory, 0), .key = key_of(3), .index_bytes = LARGE};
  put(damage.cache, damage.key, LARGE);
  damage.path = path_of(directory, damage.key);
  size_t length;
  char *bytes = slurp(damage.path, &length);
  assert_int_equal(length, LARGE + 1024 + 256);
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    bytes[places[i]] ^= 0x20;
    spit(damage.path, bytes, length);
    bytes[places[i]] ^= 0x20;
    expect_miss(&damage, "a flipped bit in byte", places[i]);
    spit(damage.path, bytes, (size_t)places[i]);
    expect_miss(&damage, "cut after", places[i] + 1000000);
  }
  free(bytes);
  cb_cache_close(damage.cache);
}

/* A head whose checksum is right and whose numbers are nonsense. */
static void test_forged_heads(void **state) {
  (void)state;
  const char *directory = fresh("forged");
  struct cb_cache *cache = open_cache(directory, 0);
  const struct cb_hash key = key_of(3);
  put(cache, key, 300);
  const char *path = path_of(directory, key);
  size_t length;
  char *bytes = slurp(path, &length);
  for (int forgery = 0; forgery < 12; forgery++) {
    struct cb_cache_head head;
    memcpy(&head, bytes, sizeof head);
    switch (forgery) {
    case 0:
      head.count = 17;
      break;
    case 1:
      head.count = UINT32_MAX;
      break;
    case 2:
      head.count = 2;
      break;
    case 3:
      head.bytes = INT64_MAX;
      break;
    case 4:
      head.rows[2].length = INT64_MAX;
      break;
    case 5:
      head.rows[2].length = -1;
      break;
    case 6:
      head.rows[2].offset = -256;
      break;
    case 7:
      head.rows[1].offset = INT64_MAX / 256 * 256;
      break;
    case 8:
      memset(head.rows[0].tag, 'x', CB_CACHE_TAG);
      break;
    case 9:
      memset(head.matrix, 'x', sizeof head.matrix);
      break;
    case 10:
      head.key = key_of(4);
      break;
    case 11:
      head.rows[2].length = 299;
      break;
    }
    head.check = cb_hash_bytes(&head, offsetof(struct cb_cache_head, check));
    char *forged = malloc(length);
    memcpy(forged, bytes, length);
    memcpy(forged, &head, sizeof head);
    spit(path, forged, length);
    free(forged);
    const enum cb_cache_outcome outcome = get(cache, key, 300);
    if (outcome != CB_CACHE_DAMAGED) fail_msg("forgery %d: %s", forgery, cb_cache_outcome_name(outcome));
  }
  free(bytes);
  cb_cache_close(cache);
}

/* Format 1 could hold kernels with numbers as the caller's locale and rounding mode had them: whatever the key, and
 * however right the sums, such an entry is no hit. */
static void entries_that_may_hold_numbers_by_locale_are_no_hits(void **state) {
  (void)state;
  const char *directory = fresh("other");
  struct cb_cache *cache = open_cache(directory, 0);
  const struct cb_hash key = key_of(3);
  put(cache, key, 300);
  size_t length;
  char *bytes = slurp(path_of(directory, key), &length);
  struct cb_cache_head head;
  memcpy(&head, bytes, sizeof head);
  head.format = 1;
  head.check = cb_hash_bytes(&head, offsetof(struct cb_cache_head, check));
  memcpy(bytes, &head, sizeof head);
  spit(path_of(directory, key), bytes, length);
  assert_outcome(get(cache, key, 300), CB_CACHE_OTHER_FORMAT);
  assert_outcome(get(cache, key, 300), CB_CACHE_OTHER_FORMAT); /* it was not removed */
  assert_outcome(put(cache, key, 300), CB_CACHE_STORED);
  assert_outcome(get(cache, key, 300), CB_CACHE_HIT);
  free(bytes);
  cb_cache_close(cache);
}

/* A put never finds damage by itself; the get before it did, and removed the entry. */
static void test_damaged_entry_is_made_again(void **state) {
  (void)state;
  const char *directory = fresh("again");
  struct cb_cache *cache = open_cache(directory, 0);
  const struct cb_hash key = key_of(3);
  put(cache, key, 3000);
  size_t length;
  char *bytes = slurp(path_of(directory, key), &length);
  bytes[length - 1] ^= 1;
  spit(path_of(directory, key), bytes, length);
  assert_outcome(get(cache, key, 3000), CB_CACHE_DAMAGED);
  assert_outcome(put(cache, key, 3000), CB_CACHE_STORED);
  assert_outcome(get(cache, key, 3000), CB_CACHE_HIT);
  free(bytes);
  cb_cache_close(cache);
}

/* ---- files that are not trusted */

enum foreigner { LINK, DANGLING, FOLDER, PIPE, GROUP_WRITES, ALL_WRITE, OTHER_USER, FOREIGNERS };

static void make_foreign(enum foreigner kind, const char *path, const char *elsewhere) {
  if (kind == LINK || kind == DANGLING || kind == FOLDER || kind == PIPE) {
    if (kind == DANGLING)
      assert_int_equal(unlink(path), 0);
    else
      assert_int_equal(rename(path, elsewhere), 0);
  }
  if (kind == LINK || kind == DANGLING) assert_int_equal(symlink(elsewhere, path), 0);
  if (kind == FOLDER) assert_int_equal(mkdir(path, 0700), 0);
  if (kind == PIPE) assert_int_equal(mkfifo(path, 0600), 0);
  if (kind == GROUP_WRITES) assert_int_equal(chmod(path, 0660), 0);
  if (kind == ALL_WRITE) assert_int_equal(chmod(path, 0602), 0);
  if (kind == OTHER_USER) assert_int_equal(chown(path, 12345, 12345), 0);
}

static void test_foreign_files_are_misses(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  for (enum foreigner kind = LINK; kind < FOREIGNERS; kind++) {
    if (kind == OTHER_USER && !is_root()) continue;
    const char *directory = fresh("foreign");
    char elsewhere[600];
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", directory);
    struct cb_cache *cache = open_cache(directory, 0);
    const struct cb_hash key = key_of(3);
    put(cache, key, 300);
    make_foreign(kind, path_of(directory, key), elsewhere);
    assert_outcome(get(cache, key, 300), CB_CACHE_FOREIGN);
    assert_outcome(get(cache, key, 300), CB_CACHE_FOREIGN); /* left alone */
    assert_outcome(cb_cache_check(cache, key, NULL), CB_CACHE_FOREIGN);
    struct cb_cache_listing listing = {0};
    assert_ok(cb_cache_list(cache, &listing, &diag));
    assert_int_equal(listing.count, 1);
    assert_int_equal(listing.items[0].foreign, 1);
    cb_cache_listing_release(&listing);
    /* Renaming replaces whatever has the name, but no directory. */
    assert_outcome(put(cache, key, 300), kind == FOLDER ? CB_CACHE_UNWRITABLE : CB_CACHE_STORED);
    assert_outcome(get(cache, key, 300), kind == FOLDER ? CB_CACHE_FOREIGN : CB_CACHE_HIT);
    assert_int_equal(count_files(directory, ".draft"), 0);
    struct cb_cache_removal removal;
    const enum cb_status cleared = cb_cache_prune(cache, 0, &removal, &diag);
    assert_int_equal(cleared, kind == FOLDER ? CB_ERR_IO : CB_OK);
    if (kind == LINK || kind == FOLDER || kind == PIPE) assert_int_equal(access(elsewhere, F_OK), 0);
    cb_cache_close(cache);
  }
}

/* ---- directories */

struct environment {
  const char *own, *xdg, *home; /* NULL: unset */
};

static void set_variable(const char *name, const char *value) {
  if (value)
    setenv(name, value, 1);
  else
    unsetenv(name);
}

static enum cb_status open_with(struct cb_cache **cache, struct environment environment, int existing) {
  const struct cb_cache_options options = {.existing = existing};
  struct cb_diag diag = {0};
  set_variable("CBGEN_CACHE_DIR", environment.own);
  set_variable("XDG_CACHE_HOME", environment.xdg);
  set_variable("HOME", environment.home);
  const enum cb_status s = cb_cache_open(cache, &options, &diag);
  if (s) assert_true(diag.message[0] && cb_cache_remark(*cache)[0]);
  return s;
}

static void expect_directory(struct environment environment, const char *base, const char *expected) {
  struct cb_cache *cache;
  char path[700];
  snprintf(path, sizeof path, "%s%s", base, expected);
  assert_int_equal(open_with(&cache, environment, 0), CB_OK);
  assert_int_equal(cb_cache_state(cache), CB_CACHE_ON);
  assert_string_equal(cb_cache_directory(cache), path);
  assert_string_equal(cb_cache_remark(cache), "");
  struct stat info;
  assert_int_equal(lstat(path, &info), 0);
  assert_int_equal(info.st_mode & 07777, 0700);
  struct cb_diag diag = {0};
  assert_outcome(put(cache, key_of(1), 10), CB_CACHE_STORED);
  assert_ok(cb_cache_remove(cache, key_of(1), &diag));
  cb_cache_close(cache);
}

static void test_where_it_is(void **state) {
  (void)state;
  char base[512], own[600], xdg[600], home[600];
  snprintf(base, sizeof base, "%s", fresh("where"));
  snprintf(own, sizeof own, "%s/a/b/own", base);
  snprintf(xdg, sizeof xdg, "%s/xdg", base);
  snprintf(home, sizeof home, "%s/home", base);
  expect_directory((struct environment){own, xdg, home}, base, "/a/b/own");
  expect_directory((struct environment){NULL, xdg, home}, base, "/xdg/cbgen");
  expect_directory((struct environment){NULL, NULL, home}, base, "/home/.cache/cbgen");
  expect_directory((struct environment){NULL, "relative", home}, base, "/home/.cache/cbgen");
  expect_directory((struct environment){NULL, "", home}, base, "/home/.cache/cbgen");
  expect_directory((struct environment){NULL, xdg, NULL}, base, "/xdg/cbgen");
  struct stat info; /* parents are private, too */
  snprintf(own, sizeof own, "%s/a/b", base);
  assert_int_equal(lstat(own, &info), 0);
  assert_int_equal(info.st_mode & 07777, 0700);
  snprintf(own, sizeof own, "%s/slashes///", base);
  expect_directory((struct environment){own, NULL, NULL}, base, "/slashes");
}

static void expect_no_cache(struct cb_cache *cache) {
  struct cb_cache_entry entry;
  struct cb_cache_listing listing = {0};
  struct cb_diag diag = {0};
  assert_outcome(put(cache, key_of(1), 10), CB_CACHE_UNUSED);
  assert_outcome(get(cache, key_of(1), 10), CB_CACHE_UNUSED);
  assert_outcome(cb_cache_peek(cache, key_of(1), NULL, &entry, NULL), CB_CACHE_UNUSED);
  assert_outcome(cb_cache_check(cache, key_of(1), NULL), CB_CACHE_UNUSED);
  assert_ok(cb_cache_list(cache, &listing, &diag));
  assert_int_equal(listing.count + listing.drafts, 0);
  assert_ok(cb_cache_prune(cache, 0, NULL, &diag));
  assert_ok(cb_cache_remove(cache, key_of(1), &diag));
  cb_cache_listing_release(&listing);
}

static void test_switched_off(void **state) {
  (void)state;
  struct cb_cache *cache;
  char home[600];
  snprintf(home, sizeof home, "%s", fresh("off"));
  assert_int_equal(open_with(&cache, (struct environment){"", home, home}, 0), CB_OK);
  assert_int_equal(cb_cache_state(cache), CB_CACHE_OFF);
  assert_true(cb_cache_remark(cache)[0]);
  expect_no_cache(cache);
  cb_cache_close(cache);
  assert_int_equal(access(home, F_OK), -1);
  expect_no_cache(NULL);
  assert_int_equal(cb_cache_state(NULL), CB_CACHE_UNUSABLE);
  cb_cache_close(NULL);
}

static void test_nowhere(void **state) {
  (void)state;
  struct cb_cache *cache;
  char home[600];
  snprintf(home, sizeof home, "%s", fresh("nowhere"));
  for (int i = 0; i < 2; i++) {
    const char *value = i ? NULL : "";
    assert_int_equal(open_with(&cache, (struct environment){NULL, value, value}, 0), CB_ERR_IO);
    assert_int_equal(cb_cache_state(cache), CB_CACHE_UNUSABLE);
    assert_non_null(strstr(cb_cache_remark(cache), "HOME"));
    expect_no_cache(cache);
    cb_cache_close(cache);
  }
  assert_int_equal(open_with(&cache, (struct environment){home, NULL, NULL}, 1), CB_OK);
  assert_int_equal(cb_cache_state(cache), CB_CACHE_NOWHERE);
  expect_no_cache(cache);
  cb_cache_close(cache);
  assert_int_equal(access(home, F_OK), -1);
}

static void expect_refused(const char *path, const char *reason) {
  struct cb_cache *cache;
  for (int existing = 0; existing < 2; existing++) {
    assert_int_equal(open_with(&cache, (struct environment){path, NULL, NULL}, existing), CB_ERR_IO);
    assert_int_equal(cb_cache_state(cache), CB_CACHE_UNUSABLE);
    if (!strstr(cb_cache_remark(cache), reason)) fail_msg("'%s' lacks '%s'", cb_cache_remark(cache), reason);
    expect_no_cache(cache);
    cb_cache_close(cache);
  }
}

static void test_refused_directories(void **state) {
  (void)state;
  char base[512], real[600], path[600];
  snprintf(base, sizeof base, "%s", fresh("refused"));
  snprintf(real, sizeof real, "%s/real", base);
  cb_cache_close(open_cache(real, 0));
  snprintf(path, sizeof path, "%s/link", base);
  assert_int_equal(symlink("real", path), 0);
  expect_refused(path, "symbolic link");
  snprintf(path, sizeof path, "%s/link/", base);
  expect_refused(path, "symbolic link");
  snprintf(path, sizeof path, "%s/link/below", base); /* a link further up is the user's own business */
  struct cb_cache *cache;
  assert_int_equal(open_with(&cache, (struct environment){path, NULL, NULL}, 0), CB_OK);
  cb_cache_close(cache);
  static const mode_t modes[] = {0720, 0702, 0777, 01777};
  for (size_t i = 0; i < 4; i++) {
    assert_int_equal(chmod(real, modes[i]), 0);
    expect_refused(real, "others may write");
  }
  assert_int_equal(chmod(real, 0755), 0);
  assert_int_equal(open_with(&cache, (struct environment){real, NULL, NULL}, 0), CB_OK);
  cb_cache_close(cache);
  if (is_root()) {
    assert_int_equal(chown(real, 12345, 12345), 0);
    expect_refused(real, "another user");
  }
  snprintf(path, sizeof path, "%s/file", base);
  spit(path, "x", 1);
  expect_refused(path, strerror(ENOTDIR));
  snprintf(path, sizeof path, "%s/file/below", base);
  expect_refused(path, strerror(ENOTDIR));
  char endless[5000];
  memset(endless, 'x', sizeof endless);
  endless[0] = '/';
  endless[sizeof endless - 1] = 0;
  expect_refused(endless, strerror(ENAMETOOLONG));
}

/* The directory goes away under an open cache: misses, and nothing is kept. */
static void test_directory_vanishes(void **state) {
  (void)state;
  const char *directory = fresh("vanishes");
  struct cb_cache *cache = open_cache(directory, 0);
  put(cache, key_of(1), 10);
  remove_tree(directory);
  assert_outcome(get(cache, key_of(1), 10), CB_CACHE_ABSENT);
  assert_outcome(put(cache, key_of(1), 10), CB_CACHE_UNWRITABLE);
  cb_cache_close(cache);
}

/* ---- sizes and eviction */

static void test_sizes(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int64_t bytes; /* -1: refused */
  } rows[] = {{"0", 0},
              {"1", 1},
              {"4096", 4096},
              {"1K", 1024},
              {"1k", 1024},
              {"3M", 3 << 20},
              {"2G", 2ll << 30},
              {"1T", 1ll << 40},
              {"", -1},
              {"G", -1},
              {"-1", -1},
              {"+1", -1},
              {" 1", -1},
              {"1 G", -1},
              {"1GB", -1},
              {"1X", -1},
              {"1.5G", -1},
              {"0x10", -1},
              {"8388607T", 8388607ll << 40},
              {"8388608T", -1},
              {"9223372036854775807", INT64_MAX},
              {"9223372036854775808", -1},
              {"1\xc3\xa4", -1}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct cb_diag diag = {0};
    int64_t bytes = -1;
    const enum cb_status s = cb_cache_size(&bytes, rows[i].text, &diag);
    if (s != (rows[i].bytes < 0 ? CB_ERR_ARGUMENT : CB_OK) || bytes != rows[i].bytes)
      fail_msg("'%s' is %lld, status %d", rows[i].text, (long long)bytes, s);
    if (s) assert_non_null(strstr(diag.message, rows[i].text));
  }
}

static void test_limit_of_the_environment(void **state) {
  (void)state;
  const char *directory = fresh("limit");
  struct cb_diag diag = {0};
  struct cb_cache *cache = open_cache(directory, 0);
  assert_int_equal(cb_cache_limit(cache), CB_CACHE_LIMIT);
  cb_cache_close(cache);
  setenv("CBGEN_CACHE_SIZE", "7M", 1);
  cache = open_cache(directory, 0);
  assert_int_equal(cb_cache_limit(cache), 7 << 20);
  cb_cache_close(cache);
  cache = open_cache(directory, 123);
  assert_int_equal(cb_cache_limit(cache), 123);
  cb_cache_close(cache);
  setenv("CBGEN_CACHE_SIZE", "0", 1); /* nothing is kept */
  cache = open_cache(directory, 0);
  assert_outcome(put(cache, key_of(1), 0), CB_CACHE_TOO_LARGE);
  cb_cache_close(cache);
  setenv("CBGEN_CACHE_SIZE", "much", 1);
  const struct cb_cache_options options = {.directory = directory};
  assert_int_equal(cb_cache_open(&cache, &options, &diag), CB_ERR_ARGUMENT);
  assert_non_null(strstr(diag.message, "CBGEN_CACHE_SIZE"));
  assert_non_null(strstr(cb_cache_remark(cache), "much"));
  assert_int_equal(cb_cache_state(cache), CB_CACHE_ON); /* ignored */
  assert_int_equal(cb_cache_limit(cache), CB_CACHE_LIMIT);
  assert_outcome(put(cache, key_of(1), 0), CB_CACHE_STORED);
  cb_cache_close(cache);
  unsetenv("CBGEN_CACHE_SIZE");
}

/* Says that the entry was last used `seconds` ago. Far apart, so that the time a test takes does not matter. */
static void age(const char *directory, struct cb_hash key, int seconds) {
  struct timespec times[2];
  clock_gettime(CLOCK_REALTIME, &times[0]);
  times[0].tv_sec -= seconds;
  times[1] = times[0];
  assert_int_equal(utimensat(AT_FDCWD, path_of(directory, key), times, 0), 0);
}

enum { ENTRY = 1024 + 256 + 720 }; /* bytes of an entry whose index has 720 */

static void test_eviction_order(void **state) {
  (void)state;
  const char *directory = fresh("order");
  struct cb_cache *cache = open_cache(directory, 5 * ENTRY);
  for (unsigned i = 0; i < 5; i++) {
    assert_outcome(put(cache, key_of(i), 720), CB_CACHE_STORED);
    age(directory, key_of(i), 1000 * (i == 3 ? 9 : 1 + (int)i)); /* 3 is the oldest, then 4, 2, 1, 0 */
  }
  assert_int_equal(count_files(directory, ".entry"), 5);
  assert_outcome(get(cache, key_of(4), 720), CB_CACHE_HIT); /* renews it: 3, 2, 1, 0 are left to go */
  assert_outcome(put(cache, key_of(10), 720), CB_CACHE_STORED);
  assert_int_equal(access(path_of(directory, key_of(3)), F_OK), -1);
  assert_int_equal(count_files(directory, ".entry"), 5);
  assert_outcome(put(cache, key_of(11), 720), CB_CACHE_STORED);
  assert_int_equal(access(path_of(directory, key_of(2)), F_OK), -1);
  assert_outcome(put(cache, key_of(1), 720), CB_CACHE_PRESENT); /* counts as use */
  assert_outcome(put(cache, key_of(12), 720), CB_CACHE_STORED);
  assert_int_equal(access(path_of(directory, key_of(0)), F_OK), -1);
  assert_outcome(put(cache, key_of(13), 5 * ENTRY - 1024 - 256), CB_CACHE_STORED); /* all others go */
  assert_int_equal(count_files(directory, ".entry"), 1);
  assert_outcome(get(cache, key_of(13), 5 * ENTRY - 1024 - 256), CB_CACHE_HIT);
  assert_int_equal(cb_cache_counts(cache).evicted, 8);
  cb_cache_close(cache);
}

/* Clocks that are ahead make other entries look newer; the one just written stays all the same. */
static void test_eviction_keeps_what_was_just_put(void **state) {
  (void)state;
  const char *directory = fresh("keeps");
  struct cb_cache *cache = open_cache(directory, 2 * ENTRY);
  for (unsigned i = 0; i < 2; i++) {
    put(cache, key_of(i), 720);
    age(directory, key_of(i), -3600 * (1 + (int)i));
  }
  assert_outcome(put(cache, key_of(7), 720), CB_CACHE_STORED);
  assert_outcome(get(cache, key_of(7), 720), CB_CACHE_HIT);
  assert_outcome(get(cache, key_of(1), 720), CB_CACHE_HIT);
  assert_outcome(get(cache, key_of(0), 720), CB_CACHE_ABSENT);
  cb_cache_close(cache);
}

static void test_prune_and_list(void **state) {
  (void)state;
  const char *directory = fresh("prune");
  struct cb_diag diag = {0};
  struct cb_cache *cache = open_cache(directory, 0);
  struct cb_cache_listing listing = {0};
  struct cb_cache_removal removal;
  for (unsigned i = 0; i < 200; i++) {
    put(cache, key_of(i), 720);
    age(directory, key_of(i), 1000 * (1 + (int)(i * 37 % 200)));
  }
  char stray[700];
  snprintf(stray, sizeof stray, "%s/README", directory);
  spit(stray, "not the cache's", 15);
  assert_ok(cb_cache_list(cache, &listing, &diag));
  assert_int_equal(listing.count, 200);
  assert_int_equal(listing.bytes, 200 * ENTRY);
  for (unsigned i = 0; i < 200; i++) {
    const struct cb_hash key = listing.items[i].key;
    assert_int_equal(listing.items[i].bytes, ENTRY);
    assert_int_equal(listing.items[i].foreign, 0);
    int found = 0;
    for (unsigned n = 0; n < 200; n++) found += key_of(n).low == key.low && n * 37 % 200 == i;
    assert_int_equal(found, 1); /* the i-th youngest */
  }
  assert_ok(cb_cache_prune(cache, 50 * ENTRY + 1, &removal, &diag));
  assert_int_equal(removal.entries, 150);
  assert_int_equal(removal.bytes, 150 * ENTRY);
  for (unsigned i = 0; i < 200; i++)
    assert_outcome(get(cache, key_of(i), 720), i * 37 % 200 < 50 ? CB_CACHE_HIT : CB_CACHE_ABSENT);
  cb_cache_listing_release(&listing);
  assert_ok(cb_cache_prune(cache, 0, &removal, &diag));
  assert_int_equal(removal.entries, 50);
  assert_int_equal(count_files(directory, ""), 1); /* the stranger's file stays */
  cb_cache_close(cache);
}

static void test_order_within_a_second(void **state) {
  (void)state;
  static const long ns[] = {500, 700, 600};
  struct cb_diag diag = {0};
  struct cb_cache_listing listing = {0};
  const char *directory = fresh("second");
  struct cb_cache *cache = open_cache(directory, 0);
  for (unsigned i = 0; i < 3; i++) {
    const struct timespec times[2] = {{1700000000, ns[i]}, {1700000000, ns[i]}};
    put(cache, key_of(i), 0);
    assert_int_equal(utimensat(AT_FDCWD, path_of(directory, key_of(i)), times, 0), 0);
  }
  assert_ok(cb_cache_list(cache, &listing, &diag));
  assert_int_equal(listing.count, 3);
  for (unsigned i = 0; i < 3; i++) assert_int_equal(listing.items[i].used_ns, 700 - 100 * i);
  cb_cache_listing_release(&listing);
  cb_cache_close(cache);
}

/* ---- drafts */

/* A process number that was a process's just now. */
static long dead_process(void) {
  const pid_t child = fork();
  if (!child) _exit(0);
  assert_true(child > 0);
  assert_int_equal(waitpid(child, NULL, 0), child);
  return (long)child;
}

static void make_draft(const char *directory, const char *host, long pid, int seconds) {
  char path[800], hex[CB_HASH_HEX];
  cb_hash_hex(key_of((uint64_t)pid), hex);
  snprintf(path, sizeof path, "%s/%s.%s-%ld-0123456789abcdef.draft", directory, hex, host, pid);
  spit(path, "unfinished", 10);
  struct timespec times[2];
  clock_gettime(CLOCK_REALTIME, &times[0]);
  times[0].tv_sec -= seconds;
  times[1] = times[0];
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void test_drafts(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  const char *directory = fresh("drafts");
  struct cb_cache *cache = open_cache(directory, 0);
  struct cb_cache_listing listing = {0};
  struct cb_cache_removal removal;
  char name[CB_CACHE_NAME], host[9] = "", other[9];
  cb_cache_draft_name(key_of(1), name);
  memcpy(host, name + 33, 8);
  snprintf(other, sizeof other, "%08x", (unsigned)strtoul(host, NULL, 16) ^ 1);
  make_draft(directory, host, dead_process(), 0);
  make_draft(directory, host, (long)getpid(), 23 * 3600);
  make_draft(directory, other, 4000001, 23 * 3600);
  make_draft(directory, other, 4000002, 25 * 3600);
  make_draft(directory, host, (long)getppid(), 25 * 3600); /* it lives, but cannot be the writer any more */
  assert_ok(cb_cache_list(cache, &listing, &diag));
  assert_int_equal(listing.count, 0);
  assert_int_equal(listing.drafts, 5);
  assert_int_equal(listing.draft_bytes, 50);
  cb_cache_listing_release(&listing);
  assert_ok(cb_cache_prune(cache, INT64_MAX, &removal, &diag));
  assert_int_equal(removal.drafts, 3);
  assert_int_equal(count_files(directory, ".draft"), 2);
  make_draft(directory, host, dead_process(), 0);
  assert_outcome(put(cache, key_of(1), 10), CB_CACHE_STORED); /* puts clean up as well */
  assert_int_equal(count_files(directory, ".draft"), 2);
  cb_cache_close(cache);
}

static void test_draft_names(void **state) {
  (void)state;
  char first[CB_CACHE_NAME], second[CB_CACHE_NAME];
  cb_cache_draft_name(key_of(1), first);
  cb_cache_draft_name(key_of(1), second);
  assert_string_not_equal(first, second);
  assert_memory_equal(first, second, 42);
}

/* ---- the process's limit on files: passing it would kill the process */

static void test_file_size_limit(void **state) {
  (void)state;
  const char *directory = fresh("fsize");
  struct cb_cache *cache = open_cache(directory, 0);
  struct rlimit before, limit;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  limit = before;
  limit.rlim_cur = 4000;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const enum cb_cache_outcome large = put(cache, key_of(1), 4000), small = put(cache, key_of(2), 2000);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_int_equal(large, CB_CACHE_TOO_LARGE);
  assert_int_equal(small, CB_CACHE_STORED);
  cb_cache_close(cache);
}

/* ---- threads */

static void *use_cache(void *argument) {
  struct cb_cache *cache = argument;
  int64_t hits = 0;
  for (int round = 0; round < 60; round++)
    for (uint64_t i = 0; i < 8; i++) {
      struct cb_cache_entry entry;
      const struct cb_hash key = key_of(i);
      if (cb_cache_get(cache, key, &entry, NULL) == CB_CACHE_HIT) {
        if (!is_right(&entry, key, 2000)) return NULL;
        hits++;
        cb_cache_entry_release(&entry);
      } else {
        put(cache, key, 2000);
      }
    }
  return hits ? cache : NULL;
}

static void test_threads_share_a_cache(void **state) {
  (void)state;
  struct cb_cache *cache = open_cache(fresh("threads"), 5 * (1024 + 256 + 2000));
  pthread_t threads[6];
  for (int i = 0; i < 6; i++) assert_int_equal(pthread_create(&threads[i], NULL, use_cache, cache), 0);
  for (int i = 0; i < 6; i++) {
    void *result;
    assert_int_equal(pthread_join(threads[i], &result), 0);
    assert_ptr_equal(result, cache);
  }
  const struct cb_cache_counts counts = cb_cache_counts(cache);
  assert_int_equal(counts.of[CB_CACHE_HIT] + counts.of[CB_CACHE_ABSENT], 6 * 60 * 8);
  cb_cache_close(cache);
}

static int leave_environment(void **state) {
  (void)state;
  unsetenv("CBGEN_CACHE_DIR");
  unsetenv("CBGEN_CACHE_SIZE");
  return 0;
}

int main(void) {
  leave_environment(NULL);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_sections_are_aligned),
      cmocka_unit_test(test_entry_outlives_everything),
      cmocka_unit_test(test_labels),
      cmocka_unit_test(test_what_cannot_be_put),
      cmocka_unit_test(test_format),
      cmocka_unit_test(test_peek),
      cmocka_unit_test(test_every_bit_counts),
      cmocka_unit_test(test_every_length_counts),
      cmocka_unit_test(test_damage_to_large_entries),
      cmocka_unit_test(test_forged_heads),
      cmocka_unit_test(entries_that_may_hold_numbers_by_locale_are_no_hits),
      cmocka_unit_test(test_damaged_entry_is_made_again),
      cmocka_unit_test(test_foreign_files_are_misses),
      cmocka_unit_test_teardown(test_where_it_is, leave_environment),
      cmocka_unit_test_teardown(test_switched_off, leave_environment),
      cmocka_unit_test_teardown(test_nowhere, leave_environment),
      cmocka_unit_test_teardown(test_refused_directories, leave_environment),
      cmocka_unit_test(test_directory_vanishes),
      cmocka_unit_test(test_sizes),
      cmocka_unit_test_teardown(test_limit_of_the_environment, leave_environment),
      cmocka_unit_test(test_eviction_order),
      cmocka_unit_test(test_eviction_keeps_what_was_just_put),
      cmocka_unit_test(test_prune_and_list),
      cmocka_unit_test(test_order_within_a_second),
      cmocka_unit_test(test_drafts),
      cmocka_unit_test(test_draft_names),
      cmocka_unit_test(test_file_size_limit),
      cmocka_unit_test(test_threads_share_a_cache),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
