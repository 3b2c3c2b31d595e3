// SPDX-License-Identifier: Apache-2.0
/* Files of binaries that come with the library: what was written is found again, and what is damaged says so. */
#include "tests/support.h"

#include "base/memory.h"
#include "runtime/cuda/binaries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { COUNT = 5, OUTLINES = 3, HEAD = 1 << 15 };
enum { HEADER = 68, ENTRY = 128, OUTLINE = 20, PACKED = 24 }; /* bytes of a file's parts: see binaries.h */

static const char *const texts[COUNT] = {"one", "two", "three", "four", ""};
static unsigned char cubins[COUNT][HEAD + 3000];

static const char *folder(void) { return getenv("CBGEN_TEST_TMP"); }

static struct cb_hash key_of(const char *text) { return cb_binaries_key(text, strlen(text)); }

static size_t length_of(int i) { return i == 1 ? HEAD + 1000 : 1 + 700 * (size_t)i; }

static void make(struct cb_text *file, const char *arch) {
  struct cb_binary binaries[COUNT];
  struct cb_diag diag = {0};
  for (int i = 0; i < COUNT; i++) {
    for (size_t k = 0; k < length_of(i); k++) cubins[i][k] = (unsigned char)(k * k / 7 + (size_t)i);
    for (size_t k = HEAD; k < length_of(i); k++) /* which no packer makes shorter, nor the dictionary */
      cubins[i][k] = (unsigned char)((k + 1) * 0x9e3779b97f4a7c15u >> 37 ^ (k + 7) * 0xc2b2ae3d27d4eb4fu >> 41);
    binaries[i] = (struct cb_binary){key_of(texts[i]), texts[i], cubins[i], length_of(i)};
  }
  /* two of one text, and one of a text that has no binary */
  struct cb_binary_outline outlines[] = {{key_of("outline 3"), key_of(texts[3])},
                                         {key_of("outline 1"), key_of(texts[1])},
                                         {key_of("outline 3 again"), key_of(texts[3])},
                                         {key_of("outline 5"), key_of("five")}};
  assert_int_equal(cb_binaries_write(file, arch, binaries, COUNT, outlines, 4, &diag), CB_OK);
}

static void put(const struct cb_text *file, const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder(), name);
  FILE *to = fopen(path, "wb");
  assert_non_null(to);
  assert_int_equal(fwrite(file->bytes, 1, file->length, to), file->length);
  assert_int_equal(fclose(to), 0);
}

static enum cb_status open_one(struct cb_binaries **binaries, struct cb_diag *diag) {
  char path[512];
  snprintf(path, sizeof path, "%s/one.bin", folder());
  return cb_binaries_open(binaries, path, diag);
}

static void check_outline(const struct cb_binaries *binaries, const char *outline, const char *text) {
  struct cb_hash key = {0};
  assert_int_equal(cb_binaries_outlined(binaries, key_of(outline), &key), text != NULL);
  if (!text) return;
  const struct cb_hash wanted = key_of(text);
  assert_memory_equal(&key, &wanted, sizeof key);
}

static void what_is_written_is_found(void **state) {
  struct cb_text file = {0};
  struct cb_binaries *binaries;
  struct cb_diag diag = {0};
  unsigned char *cubin;
  size_t length;
  (void)state;
  make(&file, "sm_90");
  put(&file, "one.bin");
  assert_int_equal(open_one(&binaries, &diag), CB_OK);
  assert_int_equal(cb_binaries_count(binaries), COUNT);
  assert_string_equal(cb_binaries_arch(binaries), "sm_90");
  for (int i = 0; i < COUNT; i++) {
    assert_true(cb_binaries_has(binaries, key_of(texts[i])));
    assert_int_equal(cb_binaries_get(binaries, key_of(texts[i]), &cubin, &length, &diag), CB_OK);
    assert_int_equal(length, length_of(i));
    assert_memory_equal(cubin, cubins[i], length);
    cb_free(cubin);
  }
  int named = 0;
  for (int i = 0; i < COUNT; i++) named += !strcmp(cb_binaries_at(binaries, i).name, "three");
  assert_int_equal(named, 1);
  assert_false(cb_binaries_has(binaries, key_of("five")));
  assert_int_equal(cb_binaries_get(binaries, key_of("five"), &cubin, &length, &diag), CB_ERR_MISSING);
  assert_null(cubin);
  assert_int_equal(cb_binaries_get(NULL, key_of("one"), &cubin, &length, &diag), CB_ERR_MISSING);
  check_outline(binaries, "outline 1", texts[1]);
  check_outline(binaries, "outline 3", texts[3]);
  check_outline(binaries, "outline 3 again", texts[3]);
  check_outline(binaries, "outline 5", NULL);
  check_outline(binaries, texts[1], NULL);
  check_outline(NULL, "outline 1", NULL);
  cb_binaries_close(binaries);
  cb_text_release(&file);
}

/* Every byte of the head and the entries is watched when the file is opened; one of a binary when that is read. */
/* Bytes of the file's dictionary: behind its entries. */
static size_t dictionary_of(const struct cb_text *file) {
  uint32_t length;
  memcpy(&length, file->bytes + 48, sizeof length);
  assert_in_range(length, 1, 1 << 15);
  return length;
}

static void damage_is_noticed(void **state) {
  struct cb_text file = {0};
  struct cb_binaries *binaries;
  (void)state;
  make(&file, "sm_90");
  const size_t entries = HEADER + COUNT * ENTRY + OUTLINES * OUTLINE + dictionary_of(&file);
  for (size_t at = 0; at < file.length; at += at < entries ? 1 : 97) {
    struct cb_diag diag = {0};
    unsigned char *cubin;
    size_t length;
    if (at >= 16 && at < 32) continue; /* the architecture's name */
    file.bytes[at] = (char)(file.bytes[at] ^ 4);
    put(&file, "one.bin");
    const enum cb_status s = open_one(&binaries, &diag);
    if (at < entries) {
      assert_int_equal(s, CB_ERR_FORMAT);
      assert_null(binaries);
      assert_non_null(strstr(diag.message, "one.bin"));
    } else {
      int bad = 0;
      assert_int_equal(s, CB_OK);
      for (int i = 0; i < COUNT; i++) {
        const enum cb_status got = cb_binaries_get(binaries, key_of(texts[i]), &cubin, &length, &diag);
        assert_true(got == CB_OK || got == CB_ERR_FORMAT);
        assert_true((got == CB_OK) == (cubin != NULL));
        bad += got != CB_OK;
        cb_free(cubin);
      }
      assert_int_equal(bad, 1);
    }
    cb_binaries_close(binaries);
    file.bytes[at] = (char)(file.bytes[at] ^ 4);
  }
  cb_text_release(&file);
}

static void cut_files_are_refused(void **state) {
  struct cb_text file = {0};
  (void)state;
  make(&file, "sm_90");
  const size_t whole = file.length;
  for (file.length = 0; file.length < whole; file.length += 13) {
    struct cb_diag diag = {0};
    struct cb_binaries *binaries;
    put(&file, "one.bin");
    assert_true(open_one(&binaries, &diag) != CB_OK);
    assert_null(binaries);
    assert_true(strlen(diag.message) > 10);
  }
  file.length = whole;
  cb_text_release(&file);
}

static void the_architecture_or_the_oldest_of_its_generation(void **state) {
  static const struct {
    const char *arch, *found; /* NULL: none */
  } cases[] = {{"sm_80", "sm_80"}, {"sm_89", "sm_80"}, {"sm_86", "sm_86"}, {"sm_90", NULL},
               {"sm_120", "sm_120"}, {"sm_121", "sm_120"}, {"sm_75", NULL}};
  static const char *const there[] = {"sm_80", "sm_86", "sm_120"};
  struct cb_binaries *binaries;
  struct cb_diag diag = {0};
  char name[64], directory[512];
  (void)state;
  snprintf(directory, sizeof directory, "%s/found", folder());
  mkdir(directory, 0755);
  for (size_t i = 0; i < sizeof there / sizeof *there; i++) {
    struct cb_text file = {0};
    make(&file, there[i]);
    snprintf(name, sizeof name, "found/families-%s.bin", there[i]);
    put(&file, name);
    cb_text_release(&file);
  }
  struct cb_text other = {0}; /* what is in it counts, too */
  make(&other, "sm_80");
  put(&other, "found/families-sm_90.bin");
  cb_text_release(&other);
  setenv("CBGEN_FAMILIES", directory, 1);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const enum cb_status s = cb_binaries_find(&binaries, cases[i].arch, &diag);
    assert_int_equal(s, cases[i].found ? CB_OK : CB_ERR_MISSING);
    if (cases[i].found) assert_string_equal(cb_binaries_arch(binaries), cases[i].found);
    cb_binaries_close(binaries);
  }
  setenv("CBGEN_FAMILIES", "", 1); /* none at all */
  assert_int_equal(cb_binaries_find(&binaries, "sm_80", &diag), CB_ERR_MISSING);
  assert_null(binaries);
  unsetenv("CBGEN_FAMILIES");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_written_is_found),
      cmocka_unit_test(damage_is_noticed),
      cmocka_unit_test(cut_files_are_refused),
      cmocka_unit_test(the_architecture_or_the_oldest_of_its_generation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
