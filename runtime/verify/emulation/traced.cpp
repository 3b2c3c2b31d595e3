// SPDX-License-Identifier: Apache-2.0
/* The nodes of a traced product: see traced.h. */
#include "emulation.h"
#include "traced.h"

constexpr size_t kMostNodes = (size_t)1 << 24; // 1.1 GB
constexpr uint16_t kUnsetEntry = 0xffff;

static List<emulation_node> nodes;
static List<uint64_t> entries;
static int line_now, depth;

emulated::At::At(int line, int region, long slot) : region(region), slot(slot) {
  if (!depth++) line_now = line;
}
emulated::At::~At() {
  if (!--depth) line_now = 0;
}

uint64_t emulated::add_node(int kind, double value, uint64_t a, uint64_t b, uint64_t c, long place, int region) {
  static const emulation_node zero = {};
  uint64_t zeros = 1;
  if (!nodes.count) nodes.add(zero);
  memcpy(&zeros, &value, sizeof zeros);
  if (kind == EMULATION_NUMBER && !zeros) return 0;
  if (nodes.count == kMostNodes)
    stop(EMULATION_MEMORY, "a trace holds at most %zu operations; trace a part of the matrix", kMostNodes);
  const bool device = machine.thread != nullptr;
  nodes.add(emulation_node{{a, b, c}, value, place, kind, region, line_now, device ? machine.launch : 0,
                           device ? machine.block->index : 0, device ? machine.thread->index : 0});
  return nodes.count - 1;
}

const emulation_node &emulated::node_of(uint64_t id) {
  static const emulation_node unset = {{0, 0, 0}, __builtin_nan(""), -1, EMULATION_UNSET, -1, 0, 0, 0, 0};
  static const emulation_node zero = {};
  if (!id) return zero;
  return id < nodes.count ? nodes.items[id] : unset;
}

uint16_t emulated::add_entry(uint64_t id) {
  if (entries.count == kUnsetEntry)
    stop(EMULATION_MEMORY, "a trace with entries of 16 bits holds at most %d of x and y; trace a part of the matrix, "
                           "or with --type=f32", (int)kUnsetEntry);
  entries.add(id);
  return (uint16_t)(entries.count - 1);
}

uint64_t emulated::entry_node(uint16_t entry) {
  return entry < entries.count ? entries.items[entry] : UINT64_MAX;
}

void write_trace(const char *path, const unsigned long *ids, size_t rows) {
  FILE *file = fopen(path, "wb");
  const emulation_trace header = {nodes.count, rows};
  const bool written = file && fwrite(&header, sizeof header, 1, file) == 1 &&
                       fwrite(nodes.items, sizeof *nodes.items, nodes.count, file) == nodes.count &&
                       fwrite(ids, sizeof *ids, rows, file) == rows;
  if ((file && fclose(file)) || !written) stop(EMULATION_MEMORY, "the trace cannot be written to '%s'", path);
}
