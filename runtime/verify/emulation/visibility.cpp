// SPDX-License-Identifier: Apache-2.0
/* When a thread sees what others have stored to global memory: see emulation.h.
 *
 * The rules are the least that CUDA promises, so a protocol between blocks that lacks a fence stops here though it may
 * work on a GPU for years. They concern store_l2, load_l2 and atomics, through which threads hand things to each other:
 *
 *   a store     waits until a __threadfence of its own thread, or of one that a barrier puts after it; without any it
 *               becomes visible when the launch ends. Its own thread, and those that a barrier puts after it, see it
 *               at once.
 *   an atomic   changes memory at once and orders nothing: stores before it may still wait.
 *   a load      must be of what the thread cannot miss: what it stored itself, what a barrier puts before it, and what
 *               was visible at an atomic of its own (or of a lane that it has met since) that a __threadfence followed.
 *               Any other store of this launch to the same address stops the kernel: the load could see it, or not.
 *               Of what atomics change it may see any value that has stood there since; the seed decides.
 */
#include "emulation.h"

enum { kMostReplaced = 1 << 20 };

unsigned char emulated::written[kWrittenMarks];

void forget_stores() {
  machine.unfenced.count = machine.replaced.count = 0;
  memset(emulated::written, 0, sizeof emulated::written);
}

// Whether the current thread must see the store, fences or not.
static bool known(const Store &store) {
  return store.block == machine.block->serial && ordered(store.moment, store.thread);
}

static Store store_now(void *p, size_t size, const void *value) {
  const Block &block = *machine.block;
  Store store = {p, 0, (unsigned)size, machine.thread->index, block.index, block.serial, now()};
  memcpy(&store.bits, value, size);
  emulated::mark_of(p) = 1;
  return store;
}

// Old values are forgotten when there are too many: then only the newer ones can still be seen.
static void note_replaced(const Store &store, uint64_t before, bool atomic) {
  List<Replaced> &replaced = machine.replaced;
  if (replaced.count == kMostReplaced) {
    replaced.count /= 2;
    memcpy((void *)replaced.items, replaced.items + replaced.count, replaced.count * sizeof *replaced.items);
  }
  replaced.add(Replaced{store, before, ++machine.clock, atomic});
}

static void publish(const Store &store) {
  uint64_t before = 0;
  memcpy(&before, store.p, store.size);
  memcpy(store.p, &store.bits, store.size);
  note_replaced(store, before, false);
}

static void publish_known(const void *p) { // of one address; null: of all
  List<Store> &pending = machine.block->pending;
  size_t kept = 0;
  for (size_t i = 0; i < pending.count; i++) {
    if ((!p || pending.items[i].p == p) && known(pending.items[i]))
      publish(pending.items[i]);
    else
      pending.items[kept++] = pending.items[i];
  }
  pending.count = kept;
}

void publish_unfenced() {
  for (size_t i = 0; i < machine.unfenced.count; i++) publish(machine.unfenced.items[i]);
  machine.unfenced.count = 0;
}

void publish_all() {
  for (unsigned b = 0; b < machine.limit; b++) {
    List<Store> &pending = machine.in_flight[b].pending;
    for (size_t i = 0; i < pending.count; i++) publish(pending.items[i]);
    pending.count = 0;
  }
}

void emulated::write_l2(void *p, size_t size, const void *value) {
  machine.block->pending.add(store_now(p, size, value));
}

[[noreturn]] static void stop_unfenced(const Store &store, int line) {
  stop(EMULATION_RACE,
       "global race: line %d reads what thread %u of block %u stores, with no __threadfence after the store, or none "
       "before the load",
       line, store.thread, store.block_index);
}

// A store of this address that is not visible yet.
static const Store *waiting_store(const void *p) {
  for (unsigned b = 0; b <= machine.limit; b++) {
    const List<Store> &stores = b < machine.limit ? machine.in_flight[b].pending : machine.unfenced;
    for (size_t i = 0; i < stores.count; i++)
      if (stores.items[i].p == p) return &stores.items[i];
  }
  return nullptr;
}

void emulated::read_l2(const void *p, size_t size, void *value, int line) {
  const List<Store> &pending = machine.block->pending;
  for (size_t i = pending.count; i-- > 0;) {
    const Store &store = pending.items[i];
    if (store.p != p || !known(store)) continue;
    memcpy(value, &store.bits, size);
    return;
  }
  if (const Store *missed = waiting_store(p)) stop_unfenced(*missed, line);
  for (size_t i = machine.replaced.count; i-- > 0;) {
    const Replaced &replaced = machine.replaced.items[i];
    if (replaced.at <= machine.thread->fenced) return;
    if (replaced.by.p != p) continue;
    if (known(replaced.by)) return;
    if (!replaced.atomic) stop_unfenced(replaced.by, line);
    if (draw() % 2) return;
    memcpy(value, &replaced.before, size);
  }
}

void emulated::begin_atomic(const void *p) {
  let_others_run();
  publish_known(p);
}

void emulated::end_atomic(void *p, size_t size, const void *before) {
  uint64_t bits = 0;
  memcpy(&bits, before, size);
  note_replaced(store_now(p, size, p), bits, true);
  machine.thread->observed = machine.clock;
  let_others_run();
}

void emulated::fence() {
  publish_known(nullptr);
  machine.thread->fenced = machine.thread->observed;
  let_others_run();
}

static bool overlap(const Store &store, uintptr_t first, size_t size) {
  return (uintptr_t)store.p < first + size && first < (uintptr_t)store.p + store.size;
}

void emulated::check_unwritten(const void *p, size_t size, int line) {
  const uintptr_t first = (uintptr_t)p;
  bool written = false;
  for (unsigned b = 0; b <= machine.limit; b++) {
    const List<Store> &stores = b < machine.limit ? machine.in_flight[b].pending : machine.unfenced;
    for (size_t i = 0; i < stores.count; i++) written |= overlap(stores.items[i], first, size);
  }
  for (size_t i = 0; i < machine.replaced.count; i++) written |= overlap(machine.replaced.items[i].by, first, size);
  if (written)
    stop(EMULATION_RACE, "line %d reads what this launch writes, but the cache that it reads may hold what stood there "
                         "before: use load_l2", line);
}

// ---- meetings and barriers

void share_observed(Thread *threads, unsigned count, unsigned mask) {
  uint64_t latest = 0;
  if (!machine.replaced.count) return;
  for (unsigned t = 0; t < count; t++)
    if (mask >> t % kWarp & 1 && threads[t].observed > latest) latest = threads[t].observed;
  for (unsigned t = 0; t < count; t++)
    if (mask >> t % kWarp & 1) threads[t].observed = latest;
}

void share_fenced(Thread *threads, unsigned count, unsigned mask) {
  uint64_t latest = 0;
  if (!machine.replaced.count) return;
  for (unsigned t = 0; t < count; t++)
    if (mask >> t % kWarp & 1 && threads[t].fenced > latest) latest = threads[t].fenced;
  for (unsigned t = 0; t < count; t++)
    if (mask >> t % kWarp & 1) threads[t].fenced = latest;
}
