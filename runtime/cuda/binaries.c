// SPDX-License-Identifier: Apache-2.0
/* Files of binaries: see binaries.h. */
#include "runtime/cuda/binaries.h"

#include "base/environment.h"
#include "base/file.h"
#include "base/memory.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

enum { VERSION = 4, ARCH = 16, NAME = 88, COMMON = 8 + 4 + 4 + ARCH + 16, HEADER = COMMON + 4 + 4 + 8 + 4 };
enum { ENTRY = 16 + 8 + 4 + 4 + 8 + NAME, OUTLINE = 16 + 4 };
enum { HEADS = 24, HEAD = 1 << 15, LEVEL = 19 }; /* of the dictionary, which is unpacked when a file is opened */
static const char magic[8] = {'C', 'B', 'G', 'E', 'N', 'B', 'I', 'N'};

struct cb_binaries {
  struct cb_mapping file;
  int count, outlines;
  char arch[ARCH + 1];
  char *dictionary;
  size_t dictionary_length;
  ZSTD_DCtx *unpacker; /* of 160 KB: made once */
};

/* ---- numbers */

static uint64_t get(const char *at, int bytes) {
  uint64_t number = 0;
  for (int i = 0; i < bytes; i++) number |= (uint64_t)(unsigned char)at[i] << 8 * i;
  return number;
}

static void put(struct cb_text *text, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; i++) {
    const char byte = (char)(number >> 8 * i);
    cb_text_add_bytes(text, &byte, 1);
  }
}

static struct cb_hash get_hash(const char *at) { return (struct cb_hash){.high = get(at, 8), .low = get(at + 8, 8)}; }

static void put_hash(struct cb_text *text, struct cb_hash hash) {
  put(text, hash.high, 8);
  put(text, hash.low, 8);
}

static void put_words(struct cb_text *text, const char *words, int room) {
  const int length = (int)strnlen(words, (size_t)room);
  cb_text_add_bytes(text, words, (size_t)length);
  for (int i = length; i < room; i++) put(text, 0, 1);
}

static int compare_keys(struct cb_hash a, struct cb_hash b) {
  if (a.high != b.high) return a.high < b.high ? -1 : 1;
  return a.low == b.low ? 0 : a.low < b.low ? -1 : 1;
}

struct cb_hash cb_binaries_key(const char *text, size_t length) { return cb_hash_bytes(text, length); }

/* ---- opening */

static const char *entry_at(const struct cb_binaries *binaries, int number) {
  return binaries->file.bytes + HEADER + (size_t)number * ENTRY;
}

static const char *outline_at(const struct cb_binaries *binaries, int number) {
  return entry_at(binaries, binaries->count) + (size_t)number * OUTLINE;
}

/* Entries ascend, and their binaries lie within the file; likewise outlines, of entries that are there. */
static int is_sound(const struct cb_binaries *binaries) {
  for (int i = 0; i < binaries->count; i++) {
    const char *entry = entry_at(binaries, i);
    const uint64_t place = get(entry + 16, 8), packed = get(entry + 24, 4);
    if (place > binaries->file.length || packed > binaries->file.length - place) return 0;
    if (i && compare_keys(get_hash(entry_at(binaries, i - 1)), get_hash(entry)) >= 0) return 0;
  }
  for (int i = 0; i < binaries->outlines; i++) {
    const char *outline = outline_at(binaries, i);
    if (get(outline + 16, 4) >= (uint64_t)binaries->count) return 0;
    if (i && compare_keys(get_hash(outline_at(binaries, i - 1)), get_hash(outline)) >= 0) return 0;
  }
  return 1;
}

static enum cb_status unpack_dictionary(struct cb_binaries *binaries, const char *packed, size_t packed_length,
                                        size_t length, struct cb_diag *diag) {
  binaries->dictionary = cb_alloc(length + 1, 1);
  binaries->unpacker = ZSTD_createDCtx();
  if (!binaries->dictionary || !binaries->unpacker) return cb_fail_memory(diag, "a dictionary", length);
  binaries->dictionary_length = ZSTD_decompress(binaries->dictionary, length, packed, packed_length);
  return binaries->dictionary_length == length ? CB_OK : CB_ERR_FORMAT;
}

static enum cb_status check(struct cb_binaries *binaries, const char *path, struct cb_diag *diag) {
  const struct cb_mapping *file = &binaries->file;
  const char *bytes = file->bytes;
  if (file->length < HEADER || memcmp(bytes, magic, sizeof magic))
    return cb_fail(diag, CB_ERR_FORMAT, "'%s' is no file of binaries", path);
  if (get(bytes + 8, 4) != VERSION)
    return cb_fail(diag, CB_ERR_FORMAT, "'%s' is of another version of the format; build it anew", path);
  const uint64_t count = get(bytes + 12, 4);
  const uint64_t packed = get(bytes + COMMON, 4), length = get(bytes + COMMON + 4, 4);
  const uint64_t outlines = get(bytes + COMMON + 16, 4), lists = count * ENTRY + outlines * OUTLINE;
  if (lists > file->length - HEADER || packed > file->length - HEADER - lists)
    return cb_fail(diag, CB_ERR_FORMAT, "'%s' is cut short; build it anew", path);
  const char *dictionary = bytes + HEADER + lists;
  binaries->count = (int)count;
  binaries->outlines = (int)outlines;
  memcpy(binaries->arch, bytes + 16, ARCH);
  const struct cb_hash sum = cb_hash_bytes(bytes + HEADER, lists);
  const uint64_t dictionary_sum = XXH3_64bits(dictionary, packed);
  enum cb_status s = CB_ERR_FORMAT;
  if (!compare_keys(sum, get_hash(bytes + 16 + ARCH)) && dictionary_sum == get(bytes + COMMON + 8, 8) &&
      length <= HEADS * HEAD && is_sound(binaries))
    s = unpack_dictionary(binaries, dictionary, packed, length, diag);
  return s == CB_ERR_FORMAT ? cb_fail(diag, s, "'%s' is damaged; build it anew", path) : s;
}

enum cb_status cb_binaries_open(struct cb_binaries **out, const char *path, struct cb_diag *diag) {
  struct cb_binaries *binaries = cb_calloc(1, sizeof *binaries);
  *out = NULL;
  if (!binaries) return cb_fail_memory(diag, "a file of binaries", sizeof *binaries);
  enum cb_status s = cb_file_map(&binaries->file, path, diag);
  if (!s) s = check(binaries, path, diag);
  if (s) cb_binaries_close(binaries);
  else *out = binaries;
  return s;
}

void cb_binaries_close(struct cb_binaries *binaries) {
  if (!binaries) return;
  cb_file_unmap(&binaries->file);
  ZSTD_freeDCtx(binaries->unpacker);
  cb_free(binaries->dictionary);
  cb_free(binaries);
}

/* The directory that this code was loaded from. Of a program dladdr tells the word by which it was called, and where
 * PATH found it, that names no directory. */
static int own_directory(char *directory, size_t size) {
  Dl_info info;
  char program[4096];
  if (!dladdr((void *)(uintptr_t)&cb_binaries_open, &info) || !info.dli_fname) return 0;
  const char *file = info.dli_fname;
  if (!strchr(file, '/')) {
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0) return 0;
    program[length] = 0;
    file = program;
  }
  const char *end = strrchr(file, '/');
  return end && snprintf(directory, size, "%.*s", (int)(end - file), file) < (int)size;
}

static enum cb_status open_in(struct cb_binaries **out, const char *directory, const char *below, const char *arch) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s%s/families-%s.bin", directory, below, arch) >= (int)sizeof path)
    return CB_ERR_LIMIT;
  const enum cb_status s = cb_binaries_open(out, path, NULL);
  if (s || !strcmp((*out)->arch, arch)) return s;
  cb_binaries_close(*out); /* a file of another name */
  *out = NULL;
  return CB_ERR_MISSING;
}

static enum cb_status find(struct cb_binaries **out, const char *arch) {
  static const char *const places[] = {"", "/cbgen", "/../" CBGEN_LIBDIR "/cbgen"};
  const char *named = cb_environment("CBGEN_FAMILIES");
  char directory[4096];
  if (named) return *named ? open_in(out, named, "", arch) : CB_ERR_MISSING;
  if (!own_directory(directory, sizeof directory)) return CB_ERR_MISSING;
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    if (!open_in(out, directory, places[i], arch)) return CB_OK;
  return CB_ERR_MISSING;
}

/* sm_89 runs what was compiled for sm_80, sm_121 what was for sm_120. */
enum cb_status cb_binaries_find(struct cb_binaries **binaries, const char *arch, struct cb_diag *diag) {
  char oldest[32];
  *binaries = NULL;
  if (!find(binaries, arch)) return CB_OK;
  snprintf(oldest, sizeof oldest, "sm_%ld", strtol(arch + 3, NULL, 10) / 10 * 10);
  if (strcmp(oldest, arch) && !find(binaries, oldest)) return CB_OK;
  return cb_fail(diag, CB_ERR_MISSING, "there is no families-%s.bin beside the library; set CBGEN_FAMILIES", arch);
}

/* ---- reading */

int cb_binaries_count(const struct cb_binaries *binaries) { return binaries->count; }

const char *cb_binaries_arch(const struct cb_binaries *binaries) { return binaries->arch; }

struct cb_binary_entry cb_binaries_at(const struct cb_binaries *binaries, int number) {
  const char *entry = entry_at(binaries, number);
  struct cb_binary_entry taken = {
      .key = get_hash(entry), .packed = (uint32_t)get(entry + 24, 4), .length = (uint32_t)get(entry + 28, 4)};
  memcpy(taken.name, entry + 40, NAME);
  return taken;
}

/* Of `count` things of `size` bytes that ascend by the hashes they begin with. NULL: there is none. */
static const char *find_hash(const char *list, int count, size_t size, struct cb_hash key) {
  int first = 0, end = count;
  while (first < end) {
    const int middle = first + (end - first) / 2;
    const char *at = list + (size_t)middle * size;
    const int order = compare_keys(get_hash(at), key);
    if (!order) return at;
    if (order < 0) first = middle + 1;
    else end = middle;
  }
  return NULL;
}

static const char *entry_of(const struct cb_binaries *binaries, struct cb_hash key) {
  return binaries ? find_hash(entry_at(binaries, 0), binaries->count, ENTRY, key) : NULL;
}

int cb_binaries_outlined(const struct cb_binaries *binaries, struct cb_hash outline, struct cb_hash *key) {
  const char *found = binaries ? find_hash(outline_at(binaries, 0), binaries->outlines, OUTLINE, outline) : NULL;
  if (found) *key = get_hash(entry_at(binaries, (int)get(found + 16, 4)));
  return found != NULL;
}

int cb_binaries_has(const struct cb_binaries *binaries, struct cb_hash key) { return entry_of(binaries, key) != NULL; }

/* Whether that gives exactly `length` bytes. */
static int unpack(const struct cb_binaries *binaries, const char *packed, size_t packed_length, unsigned char *bytes,
                  size_t length) {
  return ZSTD_decompress_usingDict(binaries->unpacker, bytes, length, packed, packed_length, binaries->dictionary,
                                   binaries->dictionary_length) == length;
}

enum cb_status cb_binaries_get(const struct cb_binaries *binaries, struct cb_hash key, unsigned char **cubin,
                               size_t *length, struct cb_diag *diag) {
  const char *entry = entry_of(binaries, key);
  *cubin = NULL;
  if (!entry) return cb_fail(diag, CB_ERR_MISSING, "the library brings no such binary");
  const char *packed = binaries->file.bytes + get(entry + 16, 8);
  const size_t packed_length = (size_t)get(entry + 24, 4);
  const size_t room = (size_t)get(entry + 28, 4);
  unsigned char *bytes = cb_alloc(room + 1, 1);
  if (!bytes) return cb_fail_memory(diag, "a binary", room);
  const int is_whole = XXH3_64bits(packed, packed_length) == get(entry + 32, 8);
  if (is_whole && unpack(binaries, packed, packed_length, bytes, room)) {
    *cubin = bytes;
    *length = room;
    return CB_OK;
  }
  cb_free(bytes);
  return cb_fail(diag, CB_ERR_FORMAT, "a binary that the library brings is damaged");
}

/* ---- writing */

static int by_key(const void *a, const void *b) {
  return compare_keys(((const struct cb_binary *)a)->key, ((const struct cb_binary *)b)->key);
}

/* Heads of binaries that are evenly spread. */
static void make_dictionary(struct cb_text *dictionary, const struct cb_binary *binaries, int count) {
  for (int i = 0; i < HEADS && count; i++) {
    const struct cb_binary *binary = &binaries[(2 * i + 1) * count / (2 * HEADS)];
    cb_text_add_bytes(dictionary, (const char *)binary->cubin, binary->length < HEAD ? binary->length : HEAD);
  }
}

/* What packs: with the dictionary, or, for the dictionary itself, without. NULL: no memory. */
static ZSTD_CCtx *open_packer(const struct cb_text *dictionary) {
  ZSTD_CCtx *packer = ZSTD_createCCtx();
  int is_good = packer && !ZSTD_isError(ZSTD_CCtx_setParameter(packer, ZSTD_c_compressionLevel, LEVEL));
  if (is_good && dictionary)
    is_good = !ZSTD_isError(ZSTD_CCtx_loadDictionary(packer, cb_text_string(dictionary), dictionary->length));
  if (is_good) return packer;
  ZSTD_freeCCtx(packer);
  return NULL;
}

/* To the end of `all`. Returns how many bytes; 0: no memory. */
static size_t pack(struct cb_text *all, ZSTD_CCtx *packer, const void *bytes, size_t length) {
  const size_t room = ZSTD_compressBound(length);
  char *packed = cb_alloc(room, 1);
  const size_t got = packer && packed ? ZSTD_compress2(packer, packed, room, bytes, length) : 0;
  const int is_good = packer && packed && !ZSTD_isError(got);
  if (is_good) cb_text_add_bytes(all, packed, got);
  cb_free(packed);
  return is_good && !all->failed ? got : 0;
}

/* Its entry, and its bytes to the end of `all`, in which `first` bytes of the file come before. 0: no memory. */
static int add_binary(struct cb_text *entries, struct cb_text *all, size_t first, ZSTD_CCtx *packer,
                      const struct cb_binary *binary) {
  const size_t place = all->length, packed = pack(all, packer, binary->cubin, binary->length);
  if (!packed) return 0;
  put_hash(entries, binary->key);
  put(entries, first + place, 8);
  put(entries, packed, 4);
  put(entries, binary->length, 4);
  put(entries, XXH3_64bits(all->bytes + place, packed), 8);
  put_words(entries, binary->name, NAME);
  return 1;
}

static void add_text(struct cb_text *file, const struct cb_text *part) {
  if (part->length) cb_text_add_bytes(file, part->bytes, part->length);
}

static int by_outline(const void *a, const void *b) {
  return compare_keys(((const struct cb_binary_outline *)a)->outline, ((const struct cb_binary_outline *)b)->outline);
}

/* Each with the number of its binary; those whose binaries are not written are left out. */
static void add_outlines(struct cb_text *list, struct cb_binary_outline *outlines, int outlines_count,
                         const struct cb_binary *binaries, int count) {
  qsort(outlines, (size_t)outlines_count, sizeof *outlines, by_outline);
  for (int i = 0; i < outlines_count; i++) {
    const struct cb_binary key = {.key = outlines[i].key};
    const struct cb_binary *own = bsearch(&key, binaries, (size_t)count, sizeof *binaries, by_key);
    if (!own) continue;
    put_hash(list, outlines[i].outline);
    put(list, (uint64_t)(own - binaries), 4);
  }
}

static void add_head(struct cb_text *file, const char *arch, int count, int outlines, const struct cb_text *entries,
                     const struct cb_text *packed, size_t dictionary_length) {
  cb_text_add_bytes(file, magic, sizeof magic);
  put(file, VERSION, 4);
  put(file, (uint64_t)count, 4);
  put_words(file, arch, ARCH);
  put_hash(file, cb_hash_bytes(entries->bytes ? entries->bytes : "", entries->length));
  put(file, packed->length, 4);
  put(file, dictionary_length, 4);
  put(file, XXH3_64bits(cb_text_string(packed), packed->length), 8);
  put(file, (uint64_t)outlines, 4);
}

enum cb_status cb_binaries_write(struct cb_text *file, const char *arch, struct cb_binary *binaries, int count,
                                 struct cb_binary_outline *outlines, int outlines_count, struct cb_diag *diag) {
  struct cb_text entries = {0}, list = {0}, all = {0}, dictionary = {0}, packed = {0};
  make_dictionary(&dictionary, binaries, count);
  qsort(binaries, (size_t)count, sizeof *binaries, by_key);
  add_outlines(&list, outlines, outlines_count, binaries, count);
  ZSTD_CCtx *plain = open_packer(NULL), *packer = dictionary.failed ? NULL : open_packer(&dictionary);
  int is_good = pack(&packed, plain, cb_text_string(&dictionary), dictionary.length) > 0;
  const size_t first = HEADER + (size_t)count * ENTRY + list.length + packed.length;
  for (int i = 0; i < count && is_good; i++) is_good = add_binary(&entries, &all, first, packer, &binaries[i]);
  add_text(&entries, &list);
  add_head(file, arch, count, (int)(list.length / OUTLINE), &entries, &packed, dictionary.length);
  add_text(file, &entries);
  add_text(file, &packed);
  add_text(file, &all);
  is_good = is_good && !file->failed && !entries.failed;
  ZSTD_freeCCtx(plain);
  ZSTD_freeCCtx(packer);
  cb_text_release(&entries);
  cb_text_release(&list);
  cb_text_release(&all);
  cb_text_release(&dictionary);
  cb_text_release(&packed);
  return is_good ? CB_OK : cb_fail_memory(diag, "a file of binaries", first);
}
