// SPDX-License-Identifier: Apache-2.0
/* Archives made from fuzz input: checksums would reject nearly every mutation of an archive itself, so the
 * members are mutated and packed anew. The input is cut into members by lengths: two bytes, then so many
 * bytes. */
#ifndef CBGEN_TESTS_FUZZ_PACK_H
#define CBGEN_TESTS_FUZZ_PACK_H

#include <archive.h>
#include <archive_entry.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct fuzz_input {
  const uint8_t *data;
  size_t size;
};

/* The next member of the input. */
static inline struct fuzz_input take_member(struct fuzz_input *input) {
  struct fuzz_input member = {input->data, 0};
  if (input->size < 2) return member;
  const size_t wanted = input->data[0] | (size_t)input->data[1] << 8, left = input->size - 2;
  member = (struct fuzz_input){input->data + 2, wanted < left ? wanted : left};
  input->data = member.data + member.size;
  input->size = left - member.size;
  return member;
}

static inline void put_member(struct archive *archive, const char *name, struct fuzz_input member) {
  struct archive_entry *entry = archive_entry_new();
  archive_entry_set_pathname(entry, name);
  archive_entry_set_size(entry, (la_int64_t)member.size);
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_set_perm(entry, 0644);
  if (archive_write_header(archive, entry) == ARCHIVE_OK)
    archive_write_data(archive, member.data, member.size);
  archive_entry_free(entry);
}

#endif
