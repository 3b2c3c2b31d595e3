// SPDX-License-Identifier: Apache-2.0
/* Deferred sections of a cache's entry, which are read while they are used. What is read is what was stored, in any
 * order and in any portions. One wrong byte anywhere is found in the end, read or not. A disk's error is no crash. */
#include "tests/cache_support.h"
#include "tests/random.h"

enum { LONG = 5 * CB_CACHE_WINDOW + 12345, SHORT = 3000 };
static const char *const tags[] = {"arrays", "map", NULL};

struct bed {
  struct cb_cache *cache;
  struct cb_hash key;
  unsigned char *arrays, *map;
  struct cb_cache_entry entry;
  int descriptors; /* open before */
};

/* "arrays" and "map" are long, "plan" and "lists" are short, and one of the tags that may be deferred is not long. */
static void prepare(struct bed *bed, const char *name) {
  struct cb_diag diag = {0};
  const struct cb_cache_label label = {.matrix = "matrix", .target = "target"};
  *bed = (struct bed){.key = {5, 6},
                      .arrays = random_bytes(LONG, 1),
                      .map = random_bytes(LONG, 2),
                      .descriptors = open_descriptors()};
  const struct cb_cache_options options = {.directory = fresh(name), .calls = &faulty_calls};
  assert_ok(cb_cache_open(&bed->cache, &options, &diag));
  const struct cb_cache_section sections[] = {
      {"plan", bed->map, SHORT}, {"arrays", bed->arrays, LONG}, {"lists", bed->arrays, 77}, {"map", bed->map, LONG}};
  assert_int_equal(cb_cache_put(bed->cache, bed->key, &label, sections, 4, &diag), CB_CACHE_STORED);
}

static void get_deferred(struct bed *bed) {
  struct cb_diag diag = {0};
  assert_int_equal(cb_cache_get_deferred(bed->cache, bed->key, tags, 100000, &bed->entry, &diag), CB_CACHE_HIT);
  assert_int_equal(bed->entry.count, 4);
  assert_false(cb_cache_is_deferred(&bed->entry, 0));
  assert_true(cb_cache_is_deferred(&bed->entry, 1));
  assert_false(cb_cache_is_deferred(&bed->entry, 2));
  assert_true(cb_cache_is_deferred(&bed->entry, 3));
  assert_memory_equal(bed->entry.sections[0].bytes, bed->map, SHORT);
  assert_memory_equal(bed->entry.sections[2].bytes, bed->arrays, 77);
}

static void dismantle(struct bed *bed) {
  cb_cache_entry_release(&bed->entry);
  cb_cache_close(bed->cache);
  free(bed->arrays);
  free(bed->map);
  assert_int_equal(open_descriptors(), bed->descriptors);
}

/* Pieces of random length from random places. 0: one could not be read. */
static int read_some(const struct bed *bed, int pieces, uint64_t seed) {
  unsigned char *room = malloc(CB_CACHE_WINDOW);
  int good = 1;
  assert_non_null(room);
  for (int i = 0; i < pieces && good; i++) {
    const int section = draw(&seed) % 2 ? 1 : 3;
    const int64_t at = (int64_t)(draw(&seed) % LONG);
    int64_t most = CB_CACHE_WINDOW - at % CB_CACHE_WINDOW;
    if (most > LONG - at) most = LONG - at;
    const int64_t length = 1 + (int64_t)(draw(&seed) % (uint64_t)most);
    const void *bytes = cb_cache_deferred_read(&bed->entry, section, at, length, room);
    good = bytes != NULL;
    if (good) assert_memory_equal(bytes, (section == 1 ? bed->arrays : bed->map) + at, (size_t)length);
  }
  free(room);
  return good;
}

static void every_piece_is_what_was_stored(void **state) {
  (void)state;
  for (int pieces = 0; pieces < 40; pieces += 13) {
    struct cb_diag diag = {0};
    struct bed bed;
    prepare(&bed, "deferred");
    get_deferred(&bed);
    assert_true(read_some(&bed, pieces, (uint64_t)pieces));
    assert_int_equal(cb_cache_deferred_check(&bed.entry, &diag), CB_CACHE_HIT);
    assert_false(cb_cache_is_deferred(&bed.entry, 1));
    assert_memory_equal(bed.entry.sections[1].bytes, bed.arrays, LONG);
    assert_memory_equal(bed.entry.sections[3].bytes, bed.map, LONG);
    assert_int_equal(cb_cache_deferred_check(&bed.entry, &diag), CB_CACHE_HIT); /* nothing is left to check */
    dismantle(&bed);
  }
}

static void short_sections_are_not_left(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct bed bed;
  prepare(&bed, "deferred-short");
  assert_int_equal(cb_cache_get_deferred(bed.cache, bed.key, tags, LONG + 1, &bed.entry, &diag), CB_CACHE_HIT);
  assert_null(bed.entry.deferred);
  assert_memory_equal(bed.entry.sections[3].bytes, bed.map, LONG);
  dismantle(&bed);
}

/* Byte `at` of the entry's file becomes another. */
static void flip(const struct bed *bed, int64_t at) {
  unsigned char byte;
  const int fd = open(path_of(cb_cache_directory(bed->cache), bed->key), O_RDWR | O_CLOEXEC);
  assert_true(fd >= 0);
  assert_int_equal(pread(fd, &byte, 1, at), 1);
  byte ^= 16;
  assert_int_equal(pwrite(fd, &byte, 1, at), 1);
  close(fd);
}

static int64_t file_place(const struct bed *bed, int section, int64_t at) {
  return (const char *)bed->entry.sections[section].bytes - (const char *)bed->entry.mapping + at;
}

static void one_wrong_byte_is_found(void **state) {
  (void)state;
  static const int64_t places[] = {0, CB_CACHE_WINDOW - 1, 3 * CB_CACHE_WINDOW, LONG - 1};
  for (int i = 0; i < 16; i++) {
    struct cb_diag diag = {0};
    struct bed bed;
    prepare(&bed, "deferred-flip");
    get_deferred(&bed);
    flip(&bed, file_place(&bed, i & 1 ? 1 : 3, places[i / 4]));
    if (i & 2) { /* read before it is checked, or not */
      unsigned char *room = malloc(CB_CACHE_WINDOW);
      assert_non_null(cb_cache_deferred_read(&bed.entry, i & 1 ? 1 : 3, places[i / 4], 1, room));
      free(room);
    }
    assert_int_equal(cb_cache_deferred_check(&bed.entry, &diag), CB_CACHE_DAMAGED);
    assert_non_null(strstr(diag.message, i & 1 ? "arrays" : "map"));
    dismantle(&bed);
  }
}

static void what_stands_between_sections_is_found(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct bed bed;
  prepare(&bed, "deferred-gap");
  get_deferred(&bed);
  flip(&bed, file_place(&bed, 1, LONG));
  assert_int_equal(cb_cache_deferred_check(&bed.entry, &diag), CB_CACHE_DAMAGED);
  dismantle(&bed);
}

/* An ordinary section is checked at once, as ever. */
static void sections_in_time_are_checked_in_time(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct bed bed;
  prepare(&bed, "deferred-eager");
  get_deferred(&bed);
  flip(&bed, file_place(&bed, 0, 100));
  cb_cache_entry_release(&bed.entry);
  assert_int_equal(cb_cache_get_deferred(bed.cache, bed.key, tags, 100000, &bed.entry, &diag), CB_CACHE_DAMAGED);
  assert_int_equal(cb_cache_get_deferred(bed.cache, bed.key, tags, 100000, &bed.entry, &diag), CB_CACHE_ABSENT);
  dismantle(&bed);
}

/* Every operation on files that fails: a miss, a piece that does not come, or a check that says so; never a crash. */
static void failing_files_are_misses(void **state) {
  (void)state;
  int failures = 0;
  for (int nth = 1;; nth++) {
    struct cb_diag diag = {0};
    struct bed bed;
    prepare(&bed, "deferred-fail");
    inject(nth, EIO, 0);
    enum cb_cache_outcome outcome = cb_cache_get_deferred(bed.cache, bed.key, tags, 100000, &bed.entry, &diag);
    int good = !outcome;
    if (good) good = read_some(&bed, 9, 3);
    if (good) good = !cb_cache_deferred_check(&bed.entry, &diag);
    const int reached = fault.hit;
    inject(0, 0, 0);
    failures += !good;
    dismantle(&bed);
    if (!reached) break;
    assert_true(nth < 100);
  }
  assert_true(failures > 15);
}

static void failing_memory_is_a_miss(void **state) {
  (void)state;
  for (uint64_t nth = 1; nth < 12; nth++) {
    struct cb_diag diag = {0};
    struct bed bed;
    prepare(&bed, "deferred-memory");
    cb_memory_fail_at(nth, 0);
    const enum cb_cache_outcome outcome = cb_cache_get_deferred(bed.cache, bed.key, tags, 100000, &bed.entry, &diag);
    cb_memory_fail_at(0, 0);
    if (!outcome) assert_int_equal(cb_cache_deferred_check(&bed.entry, &diag), CB_CACHE_HIT);
    dismantle(&bed);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_piece_is_what_was_stored),
      cmocka_unit_test(short_sections_are_not_left),
      cmocka_unit_test(one_wrong_byte_is_found),
      cmocka_unit_test(what_stands_between_sections_is_found),
      cmocka_unit_test(sections_in_time_are_checked_in_time),
      cmocka_unit_test(failing_files_are_misses),
      cmocka_unit_test(failing_memory_is_a_miss),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
