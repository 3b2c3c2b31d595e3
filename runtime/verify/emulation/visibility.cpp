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

// ---- which bytes this launch has written: by words of 8 bytes, in a table with room for twice as many

struct Word {
  uintptr_t address; // 0: the place is free
  unsigned char bytes;
};
static Word *words;
static size_t words_room, words_count;

void forget_stores() {
  machine.unfenced.count = machine.replaced.count = 0;
  memset(emulated::written, 0, sizeof emulated::written);
  if (words_count < words_room / 32) { // the next launch shall not clear what it does not fill
    free(words);
    words = nullptr;
    words_room = 0;
  } else if (words_count) {
    memset((void *)words, 0, words_room * sizeof *words);
  }
  words_count = 0;
}

// The word's place, or the one where it would be.
static Word &find_word(uintptr_t address) {
  size_t at = (size_t)((uint64_t)(address / 8) * UINT64_C(0x9e3779b97f4a7c15) >> 32) % words_room;
  while (words[at].address && words[at].address != address) at = (at + 1) % words_room;
  return words[at];
}

static void make_room_for_words() {
  Word *const old = words;
  const size_t old_room = words_room;
  words_room = old_room ? 2 * old_room : 1 << 10;
  words = (Word *)calloc(words_room, sizeof *words);
  if (!words) abort();
  for (size_t i = 0; i < old_room; i++)
    if (old[i].address) find_word(old[i].address) = old[i];
  free(old);
}

// No store reaches into a second word: they are of 1, 2, 4 or 8 bytes, and aligned.
static unsigned bytes_of(const void *p, size_t size) {
  return ((1u << size) - 1) << (uintptr_t)p % 8 & 0xff;
}

static void note_written(const void *p, size_t size) {
  if (2 * words_count >= words_room) make_room_for_words();
  const uintptr_t address = (uintptr_t)p / 8 * 8;
  Word &word = find_word(address);
  words_count += !word.address;
  word.address = address;
  word.bytes |= (unsigned char)bytes_of(p, size);
  emulated::mark_of(p) = 1;
}

void emulated::check_unwritten(const void *p, size_t size, int line) {
  const uintptr_t first = (uintptr_t)p / 8 * 8;
  if (!words_count) return;
  for (uintptr_t address = first; address < (uintptr_t)p + size; address += 8) {
    const unsigned read = address == first ? bytes_of(p, size < 8 ? size : 8) : 0xff;
    if (find_word(address).bytes & read)
      stop(EMULATION_RACE,
           "line %d reads what this launch writes, but the cache that it reads may hold what stood there before: use "
           "load_l2",
           line);
  }
}

// ---- stores and loads

// Whether the current thread must see the store, fences or not.
static bool known(const Store &store) {
  return store.block == machine.block->serial && ordered(store.moment, store.thread);
}

static Store store_now(void *p, size_t size, const void *value) {
  const Block &block = *machine.block;
  Store store = {p, 0, (unsigned)size, machine.thread->index, block.index, block.serial, now()};
  memcpy(&store.bits, value, size);
  note_written(p, size);
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
