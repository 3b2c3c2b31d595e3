// SPDX-License-Identifier: Apache-2.0
/* Damaged packed files: bits of each packed file in tests/data/frontend/good are flipped, and each is cut at many
 * lengths. Reading ends in an error, or gives exactly the matrix of the whole file: some bytes of a container, such
 * as a time of packing, are protected by nothing and mean nothing. */
#include "test_frontend.h"

#include "tests/random.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <omp.h>

static const char directory[] = "tests/data/frontend/good";

/* Whether some message of a damaged file stands for damage, and not for memory or an invariant of cbgen. */
static int is_refusal(enum cb_status status) {
  return status == CB_ERR_FORMAT || status == CB_ERR_UNSUPPORTED || status == CB_ERR_LIMIT;
}

struct counts {
  int files, refused, harmless;
};

static void read_damaged(const char *name, const char *bytes, size_t length, const struct cb_csr *whole,
                         struct counts *counts, const char *damage, size_t where) {
  struct cb_csr csr;
  struct cb_diag diag = {0};
  const enum cb_status s = cb_matrix_read_bytes(&csr, name, bytes, length, &diag);
  if (s && !is_refusal(s)) fail_msg("%s, %s %d: %s", name, damage, (int)where, diag.message);
  if (!s && !same_matrix(&csr, whole)) fail_msg("%s, %s %d: another matrix is read", name, damage, (int)where);
  counts->refused += s != CB_OK;
  counts->harmless += s == CB_OK;
  cb_csr_release(&csr);
}

/* Bits of a byte to flip: all of them where a container's headers and sums stand, else one by chance; in a large
 * file not of every byte, for there are several alike. */
static unsigned bits_to_flip(size_t at, size_t length) {
  enum { HEADER = 10, LARGE = 600 };
  static uint64_t seed = 7; /* goes on from file to file */
  if (at < HEADER || at + HEADER >= length) return 255u;
  return length > LARGE && draw(&seed) % 3 ? 0 : 1u << draw(&seed) % 8;
}

static void flip_bits(const char *name, char *bytes, size_t length, const struct cb_csr *whole, struct counts *counts) {
  for (size_t at = 0; at < length; at++) {
    const unsigned bits = bits_to_flip(at, length);
    for (int bit = 0; bit < 8; bit++) {
      if (!(bits >> bit & 1)) continue;
      bytes[at] = (char)(bytes[at] ^ 1 << bit);
      read_damaged(name, bytes, length, whole, counts, "a flipped bit of byte", at);
      bytes[at] = (char)(bytes[at] ^ 1 << bit);
    }
  }
}

typedef void damage(const char *name, char *bytes, size_t length, const struct cb_csr *whole, struct counts *counts);

static void cut(const char *name, char *bytes, size_t length, const struct cb_csr *whole, struct counts *counts) {
  const size_t step = 1 + length / 60;
  for (size_t shorter = length - 1; shorter > step; shorter -= shorter + 16 > length ? 1 : step) {
    if (shorter + 3 <= length && !memcmp(bytes + shorter, bytes, 3)) continue; /* before a second part: a whole file */
    char *exact = malloc(shorter); /* a sanitizer sees reads beyond the cut */
    assert_non_null(exact);
    memcpy(exact, bytes, shorter);
    read_damaged(name, exact, shorter, whole, counts, "cut after byte", shorter);
    free(exact);
  }
}

static void damage_files_named(const char *suffix, damage *damage, struct counts *counts) {
  DIR *files = opendir(directory);
  assert_non_null(files);
  for (struct dirent *file; (file = readdir(files));) {
    const size_t length = strlen(file->d_name), end = strlen(suffix);
    if (length <= end || strcmp(file->d_name + length - end, suffix)) continue;
    char path[512];
    size_t size;
    struct cb_csr whole;
    snprintf(path, sizeof path, "%s/%s", directory, file->d_name);
    char *bytes = load_file(path, &size);
    assert_int_equal(cb_matrix_read_bytes(&whole, path, bytes, size, NULL), CB_OK);
    damage(path, bytes, size, &whole, counts);
    cb_csr_release(&whole);
    free(bytes);
    counts->files++;
  }
  closedir(files);
}

/* `most` in a hundred bits may be without meaning. */
static void flip_bits_of(const char *suffix, int least_files, int most) {
  struct counts counts = {0};
  damage_files_named(suffix, flip_bits, &counts);
  if (counts.files < least_files) fail_msg("%d files end in '%s'", counts.files, suffix);
  if (counts.harmless * 100 > (counts.harmless + counts.refused) * most)
    fail_msg("'%s': %d flipped bits are accepted, %d refused", suffix, counts.harmless, counts.refused);
}

static void a_flipped_bit_of_gzip_is_never_read_as_data(void **unused) {
  (void)unused;
  flip_bits_of(".gz", 7, 25); /* 6 bytes of a header say when, how hard and where it was packed */
}

static void a_flipped_bit_of_zstd_is_never_read_as_data(void **unused) {
  (void)unused;
  flip_bits_of(".zst", 4, 5); /* a window may be larger than it must */
}

static void a_flipped_bit_of_xz_is_never_read_as_data(void **unused) {
  (void)unused;
  flip_bits_of(".xz", 4, 0);
}

static void a_flipped_bit_of_bzip2_is_never_read_as_data(void **unused) {
  (void)unused;
  flip_bits_of(".bz2", 4, 2);
}

static void a_flipped_bit_of_npz_is_never_read_as_data(void **unused) {
  (void)unused;
  flip_bits_of(".npz", 12, 40); /* a zip archive says most things twice, and who made it when */
}

static void a_packed_file_that_is_cut_off_is_refused(void **unused) {
  (void)unused;
  static const char *const suffixes[] = {".gz", ".zst", ".xz", ".bz2", ".npz"};
  for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
    struct counts counts = {0};
    damage_files_named(suffixes[i], cut, &counts);
    assert_true(counts.refused > 200);
  }
}

/* What one of libarchive's filters makes of the bytes; `room` is enough. */
static size_t pack(int (*add_filter)(struct archive *), const char *bytes, size_t length, char *packed, size_t room) {
  struct archive *archive = archive_write_new();
  struct archive_entry *entry = archive_entry_new();
  size_t used = 0;
  archive_entry_set_pathname(entry, "edges");
  archive_entry_set_filetype(entry, AE_IFREG);
  assert_true(add_filter(archive) >= ARCHIVE_WARN);
  assert_int_equal(archive_write_set_format_raw(archive), ARCHIVE_OK);
  assert_int_equal(archive_write_open_memory(archive, packed, room, &used), ARCHIVE_OK);
  assert_int_equal(archive_write_header(archive, entry), ARCHIVE_OK);
  assert_int_equal(archive_write_data(archive, bytes, length), length);
  assert_int_equal(archive_write_free(archive), ARCHIVE_OK);
  archive_entry_free(entry);
  return used;
}

/* An edge list does not say how many edges it has: what came before the damage would be a matrix, too. zstd is left
 * out: libarchive writes it without checksums. */
static void damage_behind_what_was_unpacked_is_told(void **unused) {
  (void)unused;
  enum { EDGES = 60000, ROOM = 1 << 20 };
  static int (*const filters[])(struct archive *) = {
      archive_write_add_filter_gzip, archive_write_add_filter_xz, archive_write_add_filter_bzip2};
  char *text = malloc(ROOM), *packed = malloc(ROOM);
  size_t length = 0;
  uint64_t seed = 3;
  assert_true(text && packed);
  for (int i = 0; i < EDGES; i++)
    length += (size_t)sprintf(text + length, "%d %d\n", (int)(draw(&seed) % 999), (int)(draw(&seed) % 999));
  for (size_t f = 0; f < sizeof filters / sizeof *filters; f++) {
    struct cb_csr csr;
    struct cb_diag diag = {0};
    const size_t bytes = pack(filters[f], text, length, packed, ROOM);
    assert_int_equal(cb_matrix_read_bytes(&csr, "edges.txt", packed, bytes, &diag), CB_OK);
    cb_csr_release(&csr);
    packed[bytes - bytes / 16] ^= 1;
    assert_int_equal(cb_matrix_read_bytes(&csr, "edges.txt", packed, bytes, &diag), CB_ERR_FORMAT);
    assert_non_null(strstr(diag.message, "cannot unpack"));
  }
  free(text);
  free(packed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_flipped_bit_of_gzip_is_never_read_as_data),
      cmocka_unit_test(a_flipped_bit_of_zstd_is_never_read_as_data),
      cmocka_unit_test(a_flipped_bit_of_xz_is_never_read_as_data),
      cmocka_unit_test(a_flipped_bit_of_bzip2_is_never_read_as_data),
      cmocka_unit_test(a_flipped_bit_of_npz_is_never_read_as_data),
      cmocka_unit_test(a_packed_file_that_is_cut_off_is_refused),
      cmocka_unit_test(damage_behind_what_was_unpacked_is_told),
  };
  omp_set_num_threads(1);
  return cmocka_run_group_tests_name("damaged packed files", tests, NULL, NULL);
}
