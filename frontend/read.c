// SPDX-License-Identifier: Apache-2.0
/* Choosing the reader: by the file's first bytes, then by its name. */
#include "frontend/read.h"

#include "base/file.h"
#include "base/memory.h"
#include "frontend/formats.h"
#include "frontend/generate.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const char generate_prefix[] = "generate:";

static size_t strip_suffix(const char *name, size_t length, const char *suffix) {
  const size_t end = strlen(suffix);
  return length > end && !strncasecmp(name + length - end, suffix, end) ? length - end : length;
}

/* The label of a matrix from the name of its file: no directories, no extensions that say how it is stored.
 */
static void name_after_file(struct cb_csr *csr, const char *path) {
  static const char *const suffixes[] = {".gz",  ".zst", ".xz",  ".bz2",   ".tgz", ".tar",
                                         ".mtx", ".npz", ".txt", ".edges", ".tsv", ".csv"};
  const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
  size_t length = strlen(base);
  for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
    length = strip_suffix(base, length, suffixes[i]);
  if (length >= sizeof csr->name) length = sizeof csr->name - 1;
  for (size_t i = 0; i < length; i++) {
    const unsigned char c = (unsigned char)base[i];
    csr->name[i] = c < 128 && (isalnum(c) || strchr("_-.", c)) ? (char)c : '_';
  }
  csr->name[length] = 0;
  if (!length) memcpy(csr->name, "matrix", sizeof "matrix");
}

/* Files that are recognised only to say what to do with them. */
static const struct {
  const char *magic, *what, *remedy;
} foreign[] = {
    {"\x93NUMPY", "a NumPy array", "save the matrix with scipy.sparse.save_npz"},
    {"\x89HDF", "an HDF5 file (perhaps of MATLAB 7.3)", "write the matrix with scipy.io.mmwrite"},
    {"MATLAB 5.0", "a MATLAB file", "load it with scipy.io.loadmat and write it with scipy.io.mmwrite"},
    {"7z\xbc\xaf\x27\x1c", "a 7-zip archive", "unpack it first"},
    {"Rar!", "a RAR archive", "unpack it first"},
};

static enum cb_status refuse_foreign(const struct cb_source *source, struct cb_diag *diag) {
  const size_t length = (size_t)(source->end - source->bytes), seen = length < 4096 ? length : 4096;
  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
    const size_t magic = strlen(foreign[i].magic);
    if (length >= magic && !memcmp(source->bytes, foreign[i].magic, magic))
      return cb_fail(diag, CB_ERR_UNSUPPORTED, "%s: this is %s; %s", source->path, foreign[i].what,
                     foreign[i].remedy);
  }
  if (memchr(source->bytes, 0, seen))
    return cb_fail(diag, CB_ERR_FORMAT,
                   "%s: this is no text; give a Matrix Market file, an edge list or a .npz of SciPy",
                   source->path);
  return CB_OK;
}

static int named_matrix_market(const char *path) {
  size_t length = strlen(path);
  static const char *const packings[] = {".gz", ".zst", ".xz", ".bz2"};
  for (size_t i = 0; i < sizeof packings / sizeof *packings; i++)
    length = strip_suffix(path, length, packings[i]);
  return strip_suffix(path, length, ".mtx") < length || strip_suffix(path, length, ".mm") < length;
}

static enum cb_status read_text(struct cb_csr *csr, const struct cb_source *file, struct cb_diag *diag) {
  struct cb_source source = *file;
  if (source.end - source.bytes >= 3 && !memcmp(source.bytes, "\xef\xbb\xbf", 3)) source.bytes += 3;
  if (source.bytes == source.end)
    return cb_fail(diag, CB_ERR_FORMAT, "%s: the file is empty; fetch it again", source.path);
  if (cb_is_matrix_market(source.bytes, (size_t)(source.end - source.bytes)))
    return cb_read_matrix_market(csr, &source, diag);
  const enum cb_status s = refuse_foreign(&source, diag);
  if (s) return s;
  if (named_matrix_market(source.path))
    return cb_fail(
        diag, CB_ERR_FORMAT,
        "%s:1: a Matrix Market file starts with '%%%%MatrixMarket matrix coordinate real general' or the "
        "like; add that line",
        source.path);
  return cb_read_edges(csr, &source, diag);
}

static enum cb_status read_packed(struct cb_csr *csr, const struct cb_source *packed, struct cb_diag *diag) {
  char *text;
  size_t length;
  enum cb_status s = cb_unpack(&text, &length, packed, diag);
  if (s) return s;
  const struct cb_source source = {.path = packed->path,
                                   .bytes = text,
                                   .end = text + length,
                                   .disposable = 1,
                                   .progress = packed->progress};
  if (cb_is_packed(text, length))
    s = cb_fail(diag, CB_ERR_UNSUPPORTED, "%s: packed twice; unpack it once by hand", packed->path);
  else
    s = read_text(csr, &source, diag);
  cb_free(text);
  return s;
}

static enum cb_status read_source(struct cb_csr *csr, const struct cb_source *source, struct cb_diag *diag) {
  const size_t length = (size_t)(source->end - source->bytes);
  *csr = (struct cb_csr){0};
  enum cb_status s;
  if (cb_is_zip(source->bytes, length))
    s = cb_read_npz(csr, source, diag);
  else if (cb_is_packed(source->bytes, length))
    s = read_packed(csr, source, diag);
  else
    s = read_text(csr, source, diag);
  if (!s) name_after_file(csr, source->path);
  return s;
}

static int is_input(const char *path) { return !strcmp(path, "-"); }

enum cb_status cb_map_source(struct cb_source *source, struct cb_mapping *mapping, const char *path,
                             const struct cb_progress *progress, struct cb_diag *diag) {
  const int input = is_input(path);
  const enum cb_status s = input ? cb_file_map_input(mapping, diag) : cb_file_map(mapping, path, diag);
  if (s) return s;
  *source = (struct cb_source){.path = input ? CB_FILE_INPUT : path,
                               .bytes = mapping->bytes,
                               .end = mapping->bytes + mapping->length,
                               .mapped = mapping->mapped,
                               .progress = progress};
  return CB_OK;
}

enum cb_status cb_matrix_read(struct cb_csr *csr, const char *path, const struct cb_progress *progress,
                              struct cb_diag *diag) {
  struct cb_mapping mapping;
  struct cb_source source;
  *csr = (struct cb_csr){0};
  if (!strncmp(path, generate_prefix, sizeof generate_prefix - 1))
    return cb_matrix_generate(csr, path + sizeof generate_prefix - 1, diag);
  enum cb_status s = cb_map_source(&source, &mapping, path, progress, diag);
  if (s) return s;
  s = read_source(csr, &source, diag);
  if (!s && is_input(path)) memcpy(csr->name, "stdin", sizeof "stdin");
  cb_file_unmap(&mapping);
  return s;
}

enum cb_status cb_matrix_read_bytes(struct cb_csr *csr, const char *name, const char *bytes, size_t length,
                                    struct cb_diag *diag) {
  const struct cb_source source = {.path = name, .bytes = bytes, .end = bytes + length};
  return read_source(csr, &source, diag);
}
