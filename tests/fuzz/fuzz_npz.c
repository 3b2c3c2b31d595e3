// SPDX-License-Identifier: Apache-2.0
/* SciPy archives. An input that starts with "PK" is read as it is; any other is the members of one. */
#include "fuzz.h"
#include "pack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const names[] = {"format.npy", "shape.npy", "data.npy", "indices.npy",
                                      "indptr.npy", "row.npy",   "col.npy"};
  static char packed[1 << 17];
  struct fuzz_input input = {data, size};
  size_t used = 0;
  if (size > 1 && data[0] == 'P' && data[1] == 'K') {
    fuzz_read("m.npz", data, size);
    return 0;
  }
  struct archive *archive = archive_write_new();
  archive_write_set_format_zip(archive);
  archive_write_zip_set_compression_store(archive);
  archive_write_open_memory(archive, packed, sizeof packed, &used);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const struct fuzz_input member = take_member(&input);
    if (member.size) put_member(archive, names[i], member);
  }
  archive_write_close(archive);
  archive_write_free(archive);
  fuzz_read("m.npz", packed, used);
  return 0;
}
