// SPDX-License-Identifier: Apache-2.0
/* cbgen cache export and import: entries as a tar archive, which holds their files as they lie in the cache
 * (KEY.entry), and may be packed. What is imported is checked like every entry, and written anew. */
#include "tool/cache_parts.h"

#include "base/environment.h"
#include "base/file.h"
#include "base/memory.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME = CB_HASH_HEX + 8 };

static void entry_name(char name[NAME], struct cb_hash key) {
  char hex[CB_HASH_HEX];
  cb_hash_hex(key, hex);
  snprintf(name, NAME, "%s.entry", hex);
}

static enum cb_status fail_archive(struct cb_diag *diag, struct archive *archive, const char *path) {
  const char *reason = archive_error_string(archive);
  if (archive_errno(archive) == ENOMEM) return cb_fail_memory(diag, path, 0);
  return cb_fail(diag, CB_ERR_FORMAT, "%s: %s", path, reason ? reason : "it is no archive that can be read");
}

/* ---- export */

static la_ssize_t sink(struct archive *archive, void *file, const void *bytes, size_t length) {
  (void)archive;
  cb_file_write(file, bytes, length); /* what goes wrong is told by commit */
  return (la_ssize_t)length;
}

static enum cb_status add_entry(struct archive *archive, const struct cb_cache *cache, struct cb_hash key,
                                const char *path, struct cb_diag *diag) {
  char name[NAME];
  struct cb_text file = {0};
  struct cb_mapping bytes;
  entry_name(name, key);
  cb_text_add(&file, "%s/%s", cb_cache_directory(cache), name);
  enum cb_status s = cb_file_map(&bytes, cb_text_string(&file), diag);
  cb_text_release(&file);
  if (s) return s;
  struct archive_entry *entry = archive_entry_new();
  if (!entry) s = cb_fail_memory(diag, path, 0);
  if (!s) {
    archive_entry_set_pathname(entry, name);
    archive_entry_set_size(entry, (la_int64_t)bytes.length);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0600);
    if (archive_write_header(archive, entry) < ARCHIVE_WARN ||
        archive_write_data(archive, bytes.bytes, bytes.length) != (la_ssize_t)bytes.length)
      s = fail_archive(diag, archive, path);
  }
  archive_entry_free(entry);
  cb_file_unmap(&bytes);
  return s;
}

/* Those that are named, else all; damaged ones are left out, and told. */
static enum cb_status choose(struct cb_hash **keys, int64_t *count, const struct cb_cache *cache,
                             const struct cb_call *call, struct cb_diag *diag) {
  struct cb_cache_listing listing = {0};
  enum cb_status s = cb_cache_list(cache, &listing, diag);
  const int64_t most = call->more_count ? call->more_count : listing.count;
  *keys = s ? NULL : cb_alloc((size_t)most + 1, sizeof **keys);
  if (!s && !*keys) s = cb_fail_memory(diag, "keys", (unsigned long long)most * sizeof **keys);
  for (*count = 0; *count < most && !s; ++*count) {
    if (call->more_count) s = cb_cache_find(cache, call->more[*count], &(*keys)[*count], diag);
    else (*keys)[*count] = listing.items[*count].key;
  }
  cb_cache_listing_release(&listing);
  return s;
}

static enum cb_status write_entries(struct archive *archive, const struct cb_cache *cache, const struct cb_call *call,
                                    int64_t *written, struct cb_diag *diag) {
  struct cb_hash *keys = NULL;
  int64_t count = 0;
  enum cb_status s = choose(&keys, &count, cache, call, diag);
  cb_progress_stage("writing '%s'", call->file);
  for (int64_t i = 0; i < count && !s; i++) {
    struct cb_diag why = {0};
    cb_progress_report(NULL, NULL, i, count);
    if (cb_cache_check(cache, keys[i], &why)) {
      cb_say("left out: %s", why.message);
      continue;
    }
    s = add_entry(archive, cache, keys[i], call->file, diag);
    *written += !s;
  }
  cb_free(keys);
  return s;
}

/* By its name: how the archive is packed. */
static enum cb_status set_format(struct archive *archive, const char *path, struct cb_diag *diag) {
  static const struct {
    const char *ending;
    int (*add)(struct archive *archive);
  } filters[] = {{".tar", archive_write_add_filter_none},
                 {".tar.gz", archive_write_add_filter_gzip},
                 {".tgz", archive_write_add_filter_gzip},
                 {".tar.xz", archive_write_add_filter_xz},
                 {".tar.zst", archive_write_add_filter_zstd}};
  const size_t length = strlen(path);
  for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
    const size_t ending = strlen(filters[i].ending);
    if (length <= ending || strcmp(path + length - ending, filters[i].ending)) continue;
    if (filters[i].add(archive) < ARCHIVE_WARN || archive_write_set_format_pax_restricted(archive) < ARCHIVE_WARN)
      return fail_archive(diag, archive, path);
    return CB_OK;
  }
  return cb_fail(diag, CB_ERR_ARGUMENT, "'%s' does not end in .tar, .tar.gz, .tgz, .tar.xz or .tar.zst", path);
}

static enum cb_status write_archive(struct cb_outfile *file, const struct cb_cache *cache, const struct cb_call *call,
                                    int64_t *written, struct cb_diag *diag) {
  struct archive *archive = archive_write_new();
  if (!archive) return cb_fail_memory(diag, call->file, 0);
  enum cb_status s = set_format(archive, call->file, diag);
  /* else zeros stand behind packed bytes, which not all unpackers take */
  if (!s) archive_write_set_bytes_in_last_block(archive, 1);
  if (!s && archive_write_open(archive, file, NULL, sink, NULL) < ARCHIVE_WARN)
    s = fail_archive(diag, archive, call->file);
  if (!s) s = write_entries(archive, cache, call, written, diag);
  if (!s && archive_write_close(archive) < ARCHIVE_WARN) s = fail_archive(diag, archive, call->file);
  archive_write_free(archive);
  return s;
}

static enum cb_status print_count(const struct cb_call *call, const char *what, int64_t count, struct cb_diag *diag) {
  struct cb_text text = {0};
  cb_text_add(&text, "%s %lld %s\n", what, (long long)count, count == 1 ? "entry" : "entries");
  const enum cb_status s = call->quiet ? CB_OK : cb_print(&text, diag);
  cb_text_release(&text);
  return s;
}

enum cb_status cb_cache_run_export(struct cb_cache *cache, const struct cb_call *call, struct cb_diag *diag) {
  struct cb_outfile *file = NULL;
  int64_t written = 0;
  if (cb_cache_state(cache) != CB_CACHE_ON)
    return cb_fail(diag, CB_ERR_IO, "there is no cache: %s", cb_cache_remark(cache));
  enum cb_status s = cb_file_create(&file, call->file, diag);
  if (!s) s = write_archive(file, cache, call, &written, diag);
  if (!s) s = cb_file_commit(file, diag);
  cb_file_abandon(file);
  return s ? s : print_count(call, "wrote", written, diag);
}

/* ---- import */

struct import {
  struct cb_cache *cache, *waiting; /* where entries go; and where they are checked before */
  char folder[64];                  /* of `waiting`: private */
  const char *path;                 /* of the archive */
  int64_t taken, refused;
};

static int parse_key(struct cb_hash *key, const char *name) {
  char hex[CB_HASH_HEX], whole[NAME];
  unsigned long long high, low;
  int end = 0;
  if (sscanf(name, "%16llx%16llx.entry%n", &high, &low, &end) != 2 || !end || name[end]) return 0;
  *key = (struct cb_hash){.high = high, .low = low};
  cb_hash_hex(*key, hex);
  entry_name(whole, *key);
  return !strcmp(whole, name);
}

static enum cb_status extract(struct archive *archive, const char *file, const char *path, struct cb_diag *diag) {
  const int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return cb_fail(diag, CB_ERR_IO, "cannot write '%s': %s", file, strerror(errno));
  const int result = archive_read_data_into_fd(archive, fd);
  enum cb_status s = result < ARCHIVE_WARN ? fail_archive(diag, archive, path) : CB_OK;
  if (close(fd) && !s) s = cb_fail(diag, CB_ERR_IO, "cannot write '%s': %s", file, strerror(errno));
  return s;
}

/* An entry that was extracted: through a cache of its own, which checks every byte, into the other. */
static enum cb_status adopt(struct import *import, struct cb_hash key, struct cb_diag *diag) {
  struct cb_cache_entry entry;
  struct cb_diag why = {0};
  enum cb_status s = CB_OK;
  if (cb_cache_get(import->waiting, key, &entry, &why) != CB_CACHE_HIT) {
    cb_say("refused: %s", why.message);
    import->refused++;
    return CB_OK;
  }
  const struct cb_cache_label label = {entry.matrix, entry.target, entry.kernel};
  const enum cb_cache_outcome outcome = cb_cache_put(import->cache, key, &label, entry.sections, entry.count, &why);
  if (outcome == CB_CACHE_STORED || outcome == CB_CACHE_PRESENT) import->taken++;
  else s = cb_fail_lines(diag, CB_ERR_IO, why.message);
  cb_cache_entry_release(&entry);
  return s;
}

static enum cb_status take_member(struct import *import, struct archive *archive, struct archive_entry *member,
                                  struct cb_diag *diag) {
  const char *name = archive_entry_pathname(member);
  char file[sizeof import->folder + NAME + 1];
  struct cb_hash key;
  if (name && !strncmp(name, "./", 2)) name += 2;
  if (archive_entry_filetype(member) == AE_IFDIR) return CB_OK;
  if (archive_entry_filetype(member) != AE_IFREG || !name || !parse_key(&key, name))
    return cb_fail(diag, CB_ERR_FORMAT,
                   "%s holds '%.80s', which is no entry of a cache: 'cbgen cache export' writes such archives",
                   import->path, name ? name : "");
  snprintf(file, sizeof file, "%s/%s", import->folder, name);
  enum cb_status s = extract(archive, file, import->path, diag);
  if (!s) s = adopt(import, key, diag);
  unlink(file);
  return s;
}

static enum cb_status read_archive(struct import *import, struct archive *archive, struct cb_diag *diag) {
  struct archive_entry *member;
  int result;
  if (archive_read_support_format_tar(archive) < ARCHIVE_WARN ||
      archive_read_support_filter_all(archive) < ARCHIVE_WARN ||
      archive_read_open_filename(archive, import->path, 1 << 16) < ARCHIVE_WARN)
    return fail_archive(diag, archive, import->path);
  while ((result = archive_read_next_header(archive, &member)) == ARCHIVE_OK || result == ARCHIVE_WARN) {
    const enum cb_status s = take_member(import, archive, member, diag);
    if (s) return s;
  }
  return result == ARCHIVE_EOF ? CB_OK : fail_archive(diag, archive, import->path);
}

static enum cb_status import_file(struct import *import, const char *path, struct cb_diag *diag) {
  struct archive *archive = archive_read_new();
  import->path = path;
  if (!archive) return cb_fail_memory(diag, path, 0);
  cb_progress_stage("reading '%s'", path);
  const enum cb_status s = read_archive(import, archive, diag);
  archive_read_free(archive);
  return s;
}

static enum cb_status open_waiting(struct import *import, struct cb_diag *diag) {
  const char *base = cb_environment("TMPDIR");
  const int length =
      snprintf(import->folder, sizeof import->folder, "%s/cbgen-import-XXXXXX", base && *base ? base : "/tmp");
  if (length >= (int)sizeof import->folder) strcpy(import->folder, "/tmp/cbgen-import-XXXXXX");
  if (!mkdtemp(import->folder)) {
    const int error = errno;
    import->folder[0] = 0;
    return cb_fail(diag, CB_ERR_IO, "no temporary directory can be made: %s", strerror(error));
  }
  const struct cb_cache_options options = {.directory = import->folder, .path = "", .limit = INT64_MAX, .existing = 1};
  return cb_cache_open(&import->waiting, &options, diag);
}

enum cb_status cb_cache_run_import(struct cb_cache *cache, const struct cb_call *call, struct cb_diag *diag) {
  struct import import = {.cache = cache};
  if (cb_cache_state(cache) != CB_CACHE_ON)
    return cb_fail(diag, CB_ERR_IO, "there is no cache: %s", cb_cache_remark(cache));
  enum cb_status s = open_waiting(&import, diag);
  for (int i = 0; i <= call->more_count && !s; i++) s = import_file(&import, i ? call->more[i - 1] : call->file, diag);
  cb_cache_close(import.waiting);
  if (*import.folder) rmdir(import.folder);
  if (!s) s = print_count(call, "took", import.taken, diag);
  if (!s && import.refused)
    s = cb_fail(diag, CB_ERR_WRONG, "%lld of %lld entries are damaged or of another version", (long long)import.refused,
                (long long)(import.refused + import.taken));
  return s;
}
