// SPDX-License-Identifier: Apache-2.0
/* Compressed files and tar archives. The first byte says how: as they are, or as members of an archive that
 * is packed here, under the names that matter. */
#include "fuzz.h"
#include "pack.h"

static size_t pack(char *packed, size_t most, int compressed, struct fuzz_input input) {
  static const char *const names[] = {"m/m_b.mtx", "m/m.mtx", "x.mtx", "y.mtx", "m/readme"};
  size_t used = 0;
  struct archive *archive = archive_write_new();
  archive_write_set_format_ustar(archive);
  if (compressed) archive_write_add_filter_gzip(archive);
  archive_write_open_memory(archive, packed, most, &used);
  while (input.size > 2) {
    const char *name = names[input.data[0] % (sizeof names / sizeof *names)];
    input.data++;
    input.size--;
    put_member(archive, name, take_member(&input));
  }
  archive_write_close(archive);
  archive_write_free(archive);
  return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char packed[1 << 20];
  if (!size) return 0;
  const struct fuzz_input input = {data + 1, size - 1};
  if (data[0] % 3 == 0)
    fuzz_read("m.tar.gz", input.data, input.size);
  else
    fuzz_read("m.tar.gz", packed, pack(packed, sizeof packed, data[0] % 3 == 2, input));
  return 0;
}
