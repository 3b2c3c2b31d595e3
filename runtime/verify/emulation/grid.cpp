// SPDX-License-Identifier: Apache-2.0
/* Grids whose thread blocks meet: the barrier over all of them, and vectors that the kernel both writes and reads.
 *
 * A cooperative launch has all of its thread blocks in flight. Between two grid barriers no thread may read, by
 * load_vector or load_input, what another one writes by store_vector, nor write what another one reads or writes: which
 * came first would be chance, and a GPU's caches may hold either. Threads of one block may where a __syncthreads lies
 * between. */
#include "emulation.h"

bool emulated::cooperative;

namespace {

// Who has touched an address since the last grid barrier.
struct Touch {
  uintptr_t address;
  uint64_t phase;   // 0: nobody
  uint64_t meeting; // of the reads
  bool written, read, read_by_many;
  unsigned writer_block, writer_thread, reader_block, reader_thread;
  Moment written_at, read_at;
};

// Open addressing; it grows by halves of its length.
struct Touches {
  Touch *slots;
  size_t length, used;
};
Touches touches;
uint64_t phase = 1, meetings; // a meeting behind which stores need not be seen begins no phase

Touch *slot_for(Touch *slots, size_t length, uintptr_t address) {
  size_t at = (address >> 2) * UINT64_C(0x9e3779b97f4a7c15) >> 20;
  for (;; at++) {
    Touch *slot = &slots[at & (length - 1)];
    if (!slot->address || slot->address == address) return slot;
  }
}

void grow() {
  const size_t length = touches.length ? 2 * touches.length : 4096;
  Touch *slots = (Touch *)calloc(length, sizeof *slots);
  if (!slots) stop(EMULATION_MEMORY, "out of memory for the vectors of a grid");
  for (size_t i = 0; i < touches.length; i++)
    if (touches.slots[i].address) *slot_for(slots, length, touches.slots[i].address) = touches.slots[i];
  free(touches.slots);
  touches.slots = slots;
  touches.length = length;
}

Touch &touch_of(const void *p) {
  if (2 * (touches.used + 1) > touches.length) grow();
  Touch *touch = slot_for(touches.slots, touches.length, (uintptr_t)p);
  if (!touch->address) touches.used++;
  if (touch->phase != phase) *touch = Touch{};
  touch->address = (uintptr_t)p;
  touch->phase = phase;
  return *touch;
}

// Whether what that thread did then is ordered before what the current thread does now.
bool comes_before(unsigned block, unsigned thread, const Moment &moment) {
  return block == machine.block->index && ordered(moment, thread);
}

[[noreturn]] void stop_race(const char *now, const char *before, unsigned block, unsigned thread, int line) {
  stop(EMULATION_RACE,
       "vector race: line %d %s what thread %u of block %u %s, with no grid_barrier between", line, now, thread, block,
       before);
}

unsigned waiting() {
  unsigned count = 0;
  for (unsigned i = 0; i < machine.limit; i++) count += machine.in_flight[i].at_grid;
  return count;
}

} // namespace

void forget_vectors() {
  memset(touches.slots, 0, touches.length * sizeof *touches.slots);
  touches.used = 0;
  phase = 1;
}

void emulated::read_vector(const void *p, int line) {
  Touch &touch = touch_of(p);
  if (touch.written && !comes_before(touch.writer_block, touch.writer_thread, touch.written_at))
    stop_race("reads", "writes", touch.writer_block, touch.writer_thread, line);
  const unsigned block = machine.block->index, thread = machine.thread->index;
  if (touch.meeting != meetings) touch.read = touch.read_by_many = false;
  touch.meeting = meetings;
  touch.read_by_many |= touch.read && (touch.reader_block != block || touch.reader_thread != thread);
  touch.read = true;
  touch.reader_block = block;
  touch.reader_thread = thread;
  touch.read_at = now();
}

void emulated::write_vector(const void *p, int line) {
  Touch &touch = touch_of(p);
  if (touch.written && !comes_before(touch.writer_block, touch.writer_thread, touch.written_at))
    stop_race("writes", "writes", touch.writer_block, touch.writer_thread, line);
  if (touch.read && touch.meeting == meetings && (touch.read_by_many || !comes_before(touch.reader_block, touch.reader_thread, touch.read_at)))
    stop_race("writes", "reads", touch.reader_block, touch.reader_thread, line);
  touch.written = true;
  touch.writer_block = machine.block->index;
  touch.writer_thread = machine.thread->index;
  touch.written_at = now();
}

// ---- the barrier

static void check_grid(const Block &block, int line) {
  if (!emulated::cooperative)
    stop(EMULATION_DIVERGENT, "grid_barrier in line %d of a kernel whose launch is not cooperative", line);
  if (block.arrived)
    stop(EMULATION_DIVERGENT, "divergent barrier: grid_barrier in line %d, but other threads wait at __syncthreads in "
                              "line %d", line, block.barrier_line);
  for (unsigned i = 0; i < machine.limit; i++)
    if (machine.in_flight[i].exited)
      stop(EMULATION_DIVERGENT, "divergent barrier: grid_barrier in line %d, but threads of block %u have exited", line,
           machine.in_flight[i].index);
  if (machine.grid_line && machine.grid_line != line)
    stop(EMULATION_DIVERGENT, "divergent barrier: grid_barrier in line %d, but other threads are at the one in line %d",
         line, machine.grid_line);
}

void check_no_grid_barrier(const char *what) {
  if (!emulated::cooperative || !waiting()) return;
  stop(EMULATION_DIVERGENT, "divergent barrier: %s while %u others wait at the grid_barrier in line %d", what, waiting(),
       machine.grid_line);
}

// All stores are visible to all from here on; those to vectors only if `seen`.
static void open_grid(bool seen) {
  publish_all();
  for (unsigned i = 0; i < machine.limit; i++) {
    Block &block = machine.in_flight[i];
    block.at_grid = 0;
    block.barriers++;
    for (unsigned t = 0; t < block.threads_made; t++)
      block.threads[t].observed = block.threads[t].fenced = machine.clock;
    for (unsigned w = 0; w * kWarp < block.threads_made; w++) {
      block.warps[w].barrier = 0;
      set_ready(block.warps[w], block.warps[w].present);
    }
  }
  machine.grid_line = 0;
  phase += seen;
  meetings++;
}

void emulated::sync_grid(int line, bool seen) {
  Thread &self = *machine.thread;
  self.line = line;
  events++;
  check_grid(*machine.block, line);
  machine.grid_line = line;
  machine.warp->barrier |= 1u << self.index % kWarp;
  machine.block->at_grid++;
  if (waiting() < machine.blocks * machine.threads) {
    wait_here();
    return;
  }
  open_grid(seen);
  run_another_warp(self.fiber);
}
