// SPDX-License-Identifier: Apache-2.0
/* Shared memory: see emulation.h.
 *
 * Every slot of a Shared array has a shadow: the last write, and who has read since. An access is checked
 * against them: a read needs a write of this block before it, and whatever conflicts must be ordered by
 * __syncthreads, or within a warp by __syncwarp. (Shuffles and votes exchange registers; CUDA gives them no
 * effect on memory.) So a missing barrier stops the kernel in whatever order its threads run.
 */
#include "emulation.h"

static void place_array(emulated::Place &place, long count, size_t size) {
  place.launch = machine.launch;
  place.bytes = (machine.shared_bytes + 15) / 16 * 16;
  place.slots = machine.shared_slots;
  const size_t end = place.bytes + (size_t)count * size;
  if (end > kStaticShared)
    stop(EMULATION_BOUNDS, "the kernel's shared arrays take more than %d bytes", (int)kStaticShared);
  machine.shared_bytes = (unsigned)end;
  machine.shared_slots += (unsigned)count;
}

[[noreturn]] static void stop_race(const char *what, int line, long i, const char *other_what,
                                   const Access &other) {
  stop(EMULATION_RACE,
       "shared race: %s slot %ld in line %d, and thread %u %s it in line %d, with no barrier in between",
       what, i, line, other.thread, other_what, other.line);
}

// Whether some reader of the slot is not ordered before the current thread.
static bool reader_unordered(const ShadowSlot &slot) {
  if (!slot.read || slot.reader.moment.barrier < machine.block->barriers) return false;
  if (slot.read_by_many || slot.reader.thread / kWarp != machine.thread->index / kWarp)
    return slot.read_by_many || !ordered(slot.reader.moment, slot.reader.thread);
  const unsigned first = slot.reader.thread / kWarp * kWarp;
  for (unsigned left = slot.readers; left; left &= left - 1)
    if (!ordered(slot.reader.moment, first + (unsigned)__builtin_ctz(left))) return true;
  return false;
}

static void note_write(ShadowSlot &slot, const Access &access, long i) {
  if (slot.written && !ordered(slot.writer.moment, slot.writer.thread))
    stop_race("the thread writes", access.line, i, "wrote", slot.writer);
  if (reader_unordered(slot)) stop_race("the thread writes", access.line, i, "read", slot.reader);
  slot.written = true;
  slot.writer = access;
  slot.read = slot.read_by_many = false;
  slot.readers = 0;
}

static void note_read(ShadowSlot &slot, const Access &access, long i) {
  if (!slot.written)
    stop(EMULATION_UNINITIALISED, "line %d reads slot %ld of a shared array before it is written",
         access.line, i);
  if (!ordered(slot.writer.moment, slot.writer.thread))
    stop_race("the thread reads", access.line, i, "wrote", slot.writer);
  const bool earlier = !slot.read || slot.reader.moment.barrier < access.moment.barrier;
  const bool same_warp = slot.read && slot.reader.thread / kWarp == access.thread / kWarp;
  if (earlier || (same_warp && !slot.read_by_many && slot.reader.moment.epoch < access.moment.epoch)) {
    slot.read_by_many = false;
    slot.readers = 0;
  } else if (!same_warp) {
    slot.read_by_many = true;
  }
  slot.read = true;
  slot.readers |= 1u << access.thread % kWarp;
  slot.reader = access;
}

// Notes an access of the current thread to slot i of an array, whose shadow this is.
static void note(ShadowSlot &slot, long i, bool write, int line) {
  if (slot.block != machine.block->serial) {
    slot.block = machine.block->serial;
    slot.written = slot.read = slot.read_by_many = false;
    slot.readers = 0;
  }
  const Access access = {now(), line, machine.thread->index};
  write ? note_write(slot, access, i) : note_read(slot, access, i);
}

static void check_slot(long i, long count, int line) {
  if (i < 0 || i >= count)
    stop(EMULATION_BOUNDS, "line %d uses slot %ld of a shared array of %ld", line, i, count);
}

void *emulated::shared_slot(Place &place, long count, size_t size, long i, bool write, int line) {
  if (place.launch != machine.launch) place_array(place, count, size);
  check_slot(i, count, line);
  note(machine.block->shadow[place.slots + (size_t)i], i, write, line);
  return machine.block->shared + place.bytes + (size_t)i * size;
}

static Block &block_of(unsigned index, int line) {
  for (unsigned i = 0; i < machine.limit && emulated::cooperative; i++)
    if (machine.in_flight[i].index == index && index < machine.blocks) return machine.in_flight[i];
  stop(EMULATION_BOUNDS, "line %d uses the shared memory of block %u, which is not in the cluster", line, index);
}

// A write to the array of another block, which that one may not read or write until a barrier of both.
void *emulated::cluster_slot(Place &place, unsigned index, long count, size_t size, long i, int line) {
  Block &other = block_of(index, line);
  if (index == machine.block->index) return shared_slot(place, count, size, i, true, line);
  if (place.launch != machine.launch) place_array(place, count, size);
  check_slot(i, count, line);
  ShadowSlot &slot = other.shadow[place.slots + (size_t)i];
  const Access access = {{other.barriers, 0, 0}, line, kMaxThreads};
  if (slot.block == other.serial && slot.read && slot.reader.moment.barrier >= other.barriers)
    stop_race("another block writes", line, i, "read", slot.reader);
  slot.block = other.serial;
  slot.written = true;
  slot.writer = access;
  slot.read = slot.read_by_many = false;
  slot.readers = 0;
  return other.shared + place.bytes + (size_t)i * size;
}

void *emulated::dynamic_slot(long count, size_t size, long i, bool write, int line) {
  const size_t at = (size_t)i * size;
  if (!count) count = (long)(machine.dynamic_bytes / size);
  check_slot(i, count, line);
  if ((size_t)count * size > machine.dynamic_bytes)
    stop(EMULATION_BOUNDS, "line %d uses an array of %zu bytes, but the launch has %zu of dynamic shared memory", line,
         (size_t)count * size, machine.dynamic_bytes);
  if (size % kShadowUnit)
    stop(EMULATION_ALIGNMENT, "line %d: dynamic shared memory has elements of 2, 4 or 8 bytes", line);
  note(machine.block->dynamic_shadow[at / kShadowUnit], i, write, line);
  return machine.block->dynamic + at;
}

// ---- dynamic shared memory of a cluster

void *emulated::dynamic_at(size_t byte, size_t size) {
  if (byte > machine.dynamic_bytes)
    stop(EMULATION_BOUNDS, "the kernel uses byte %zu of dynamic shared memory, but the launch has %zu", byte,
         machine.dynamic_bytes);
  if (byte % size) stop(EMULATION_ALIGNMENT, "byte %zu of dynamic shared memory holds no number of %zu bytes", byte, size);
  return machine.block->dynamic + byte;
}

// The same place of another block's memory.
void *emulated::dynamic_there(const void *place, unsigned block, size_t size, int line) {
  Block &other = block_of(block, line);
  const ptrdiff_t at = (const char *)place - machine.block->dynamic;
  if (at < 0 || (size_t)at + size > machine.dynamic_bytes)
    stop(EMULATION_BOUNDS, "line %d uses what is not in the shared memory of block %u", line, block);
  return other.dynamic + at;
}

void emulated::note_arrival(unsigned block, size_t size, uint32_t meeting) {
  block_of(block, 0).came[meeting % 2] += size;
}

void emulated::check_arrivals(size_t bytes, uint32_t meeting, int line) {
  size_t &came = machine.block->came[meeting % 2];
  if (came != bytes)
    stop(EMULATION_DIVERGENT, "block %u awaits %zu bytes in line %d, and %zu come", machine.block->index, bytes, line, came);
  came = 0;
}
