// SPDX-License-Identifier: Apache-2.0
/* Blocks, warps and threads: see emulation.h.
 *
 * A thread runs until it must wait: for the other lanes of a mask (meet), or for its block (sync_block). It
 * then switches straight to another lane of its warp, or, when there is none, to a warp drawn at random from
 * all blocks in flight. When a meeting or a barrier is complete a draw decides whether the warp goes on or
 * another one does. Blocks start in a seeded order, up to four at a time, so that protocols between blocks
 * see many interleavings.
 */
#include "emulation.h"

#include <sys/mman.h>

using emulated::Meeting;

Machine machine;
emulated::Position threadIdx, blockIdx;
bool emulated::waited;
bool emulated::overlaps = true;  // as those of a text's own host section do
uint64_t emulated::events;

void seed_machine(uint64_t seed) {
  machine.random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
  for (int i = 0; i < 4; i++) draw();
}

void *map_zeros(size_t bytes) {
  void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) stop(EMULATION_MEMORY, "out of memory");
  return p;
}

static unsigned lane_of(const Thread &thread) {
  return thread.index % kWarp;
}

// ---- who runs next

void set_ready(Warp &warp, unsigned lanes) {
  if (lanes && !warp.ready) {
    warp.position = (unsigned)machine.ready.count;
    machine.ready.add(&warp);
  }
  warp.ready |= lanes;
}

static void set_running(Warp &warp, unsigned lane) {
  warp.ready &= ~(1u << lane);
  if (warp.ready) return;
  Warp *last = machine.ready.items[--machine.ready.count];
  machine.ready.items[warp.position] = last;
  last->position = warp.position;
}

static void note_events() {
  if (machine.counted) machine.counted->events += emulated::events;
  emulated::events = 0;
}

static void enter(Warp &warp, unsigned lane) {
  note_events();
  machine.warp = &warp;
  machine.block = warp.block;
  machine.thread = machine.counted = &warp.lanes[lane];
  threadIdx.x = machine.thread->index;
  blockIdx.x = warp.block->index;
  emulated::waited = machine.thread->waited;
}

static void resume_lane(Fiber &from, Warp &warp, unsigned lane) {
  set_running(warp, lane);
  enter(warp, lane);
  if (&machine.thread->fiber != &from) fiber_switch(from, machine.thread->fiber);
}

// Switches from `from` to a ready lane of `warp`.
static void resume(Fiber &from, Warp &warp) {
  const int last = 31 - __builtin_clz(warp.ready);
  resume_lane(from, warp, (unsigned)(machine.descending ? last : __builtin_ctz(warp.ready)));
}

static bool same_meeting(const Thread &a, const Thread &b) {
  return a.meeting == b.meeting && a.mask == b.mask && a.line == b.line;
}

static bool name_each_other(const Thread &a, const Thread &b) {
  return (a.mask >> lane_of(b) & 1) && (b.mask >> lane_of(a) & 1);
}

[[noreturn]] static void stop_clash(Thread &a, const Thread &b) {
  machine.thread = &a;
  stop(EMULATION_DIVERGENT,
       "threads %u and %u name each other, but in lines %d and %d, or for different masks or operations",
       a.index, b.index, a.line, b.line);
}

// Ends the program if two waiting lanes of the warp can never meet.
static void check_clashes(const Warp &warp) {
  for (unsigned left = warp.meeting; left; left &= left - 1)
    for (unsigned others = left & (left - 1); others; others &= others - 1) {
      Thread &a = warp.lanes[__builtin_ctz(left)], &b = warp.lanes[__builtin_ctz(others)];
      if (!same_meeting(a, b) && name_each_other(a, b)) stop_clash(a, b);
    }
}

static bool names_absent(const Warp &warp, unsigned absent) {
  for (unsigned lane = 0; lane < kWarp; lane++)
    if (warp.meeting >> lane & 1 && warp.lanes[lane].mask & absent) return true;
  return false;
}

// Nobody can run: names the reason. A mask that names lanes which exited or wait elsewhere is divergence.
[[noreturn]] static void stop_deadlock() {
  for (unsigned i = 0; i < machine.limit; i++) {
    Block &block = machine.in_flight[i];
    for (unsigned w = 0; w * kWarp < block.threads_made; w++) {
      Warp &warp = block.warps[w];
      machine.block = &block;
      if (!warp.meeting && !block.arrived) continue;
      machine.warp = &warp;
      const unsigned waiting = warp.meeting | warp.barrier;
      machine.thread = waiting ? &warp.lanes[__builtin_ctz(waiting)] : nullptr;
      check_clashes(warp);
      if (names_absent(warp, warp.exited | warp.barrier) || (block.arrived && warp.meeting))
        stop(EMULATION_DIVERGENT, "threads that must meet wait at different places or have exited");
    }
  }
  check_no_grid_barrier("threads wait elsewhere");
  stop(EMULATION_DEADLOCK, "deadlock: every thread waits");
}

void run_another_warp(Fiber &from) {
  if (!machine.ready.count) stop_deadlock();
  resume(from, *machine.ready.items[draw() % machine.ready.count]);
}

// The current thread waits; somebody else runs until it is resumed.
void wait_here() {
  Fiber &self = machine.thread->fiber;
  if (machine.warp->ready)
    resume(self, *machine.warp);
  else
    run_another_warp(self);
}

// One time in `odds` the current thread, which could go on, lets a random warp run first.
static void maybe_yield(unsigned odds) {
  if (draw() % odds) return;
  set_ready(*machine.warp, 1u << lane_of(*machine.thread));
  run_another_warp(machine.thread->fiber);
}

void let_others_run() {
  if (machine.thread) maybe_yield(2);
}

void emulated::note_progress() { machine.waits = 0; }

void emulated::await_progress(int line) {
  enum { MOST = 1 << 24 };
  if (++machine.waits > MOST) stop(EMULATION_DEADLOCK, "line %d awaits a number that nobody hands on", line);
  // Each lane of the warp that can run gets its turn, then another warp.
  Warp &warp = *machine.warp;
  Fiber &self = machine.thread->fiber;
  const unsigned lane = lane_of(*machine.thread), behind = lane == 31 ? 0 : warp.ready >> (lane + 1);
  set_ready(warp, 1u << lane);
  if (behind) {
    resume_lane(self, warp, lane + 1 + (unsigned)__builtin_ctz(behind));
    return;
  }
  Warp &other = *machine.ready.items[draw() % machine.ready.count];
  resume_lane(self, other, (unsigned)__builtin_ctz(other.ready));
}

// ---- kernels before this one

void emulated::wait(const char *kernel) {
  machine.kernel = kernel;
  waited = machine.thread->waited = true;
}

void emulated::too_early(int line) {
  stop(EMULATION_RACE, "line %d reads an input before wait_for_previous: the kernel before may still write it", line);
}

// ---- clocks: each place for a block in flight is a multiprocessor, which has one block at a time

void emulated::begin_clock(uint64_t *time, uint64_t *multiprocessor) {
  *time = machine.block->began;
  *multiprocessor = (uint64_t)(machine.block - machine.in_flight);
}

// A warp takes as long as the lane with the most events: they run side by side.
uint64_t emulated::end_clock() {
  const Warp &warp = *machine.warp;
  uint64_t most = 0;
  note_events();
  for (unsigned lane = 0; lane < kWarp; lane++)
    if (warp.present >> lane & 1 && warp.lanes[lane].events > most) most = warp.lanes[lane].events;
  return machine.block->began + most;
}

// A launch begins when all that was before it has ended.
static void align_clocks() {
  uint64_t latest = 0;
  for (const Block &block : machine.in_flight)
    if (block.ended > latest) latest = block.ended;
  for (Block &block : machine.in_flight) block.ended = latest;
}

static void stop_clock(Block &block) {
  uint64_t most = 0;
  note_events();
  for (unsigned t = 0; t < block.threads_made; t++)
    if (block.threads[t].events > most) most = block.threads[t].events;
  block.ended = block.began + most;
}

// ---- order

Moment now() {
  return Moment{machine.block->barriers, machine.warp->epoch, machine.warp->partial};
}

bool ordered(const Moment &moment, unsigned thread) {
  if (thread == machine.thread->index || moment.barrier < machine.block->barriers) return true;
  const Warp &warp = *machine.warp;
  if (thread / kWarp != machine.thread->index / kWarp) return false;
  if (moment.epoch < warp.epoch) return true;
  return warp.split && warp.known[lane_of(*machine.thread)][thread % kWarp] > moment.partial;
}

// A __syncwarp of the lanes of `mask`: each learns what all of them know.
static void order(Warp &warp, unsigned mask) {
  share_fenced(warp.lanes, kWarp, mask);
  if (mask == warp.present) {
    warp.epoch++;
    if (warp.split) memset(warp.known, 0, sizeof warp.known);
    warp.split = false;
    warp.partial = 0;
    return;
  }
  uint32_t joint[kWarp] = {};
  const uint32_t time = ++warp.partial;
  if (!warp.split) memset(warp.known, 0, sizeof warp.known);
  warp.split = true;
  for (unsigned a = 0; a < kWarp; a++)
    for (unsigned b = 0; mask >> a & 1 && b < kWarp; b++)
      if (joint[b] < warp.known[a][b]) joint[b] = warp.known[a][b];
  for (unsigned a = 0; a < kWarp; a++)
    if (mask >> a & 1) joint[a] = time;
  for (unsigned a = 0; a < kWarp; a++)
    if (mask >> a & 1) memcpy(warp.known[a], joint, sizeof joint);
}

// ---- meetings of lanes

// The lane that `lane` reads in a shuffle; itself when the source lies outside its segment.
static unsigned source_lane(const Thread &thread, unsigned lane) {
  const unsigned width = (unsigned)thread.width, first = lane & ~(width - 1), last = first + width - 1;
  const unsigned argument = (unsigned)thread.argument;
  switch (thread.meeting) {
  case emulated::kShuffleXor:
    return (lane ^ argument) <= last ? lane ^ argument : lane;
  case emulated::kShuffleDown:
    return argument <= last - lane ? lane + argument : lane;
  case emulated::kShuffleUp:
    return argument <= lane - first ? lane - argument : lane;
  default:
    return first + (argument & (width - 1));
  }
}

// What the meeting gives a lane; `before`: what the lanes brought.
static uint64_t answer(Thread &thread, unsigned lane, unsigned mask, unsigned votes, const uint64_t before[kWarp]) {
  switch (thread.meeting) {
  case emulated::kBallot:
    return votes;
  case emulated::kAny:
    return votes != 0;
  case emulated::kAll:
    return votes == mask;
  case emulated::kSyncWarp:
  case emulated::kBring:
    return thread.bits;
  default:
    break;
  }
  const unsigned source = source_lane(thread, lane);
  if (!(mask >> source & 1)) {
    machine.thread = &thread;
    stop(EMULATION_SOURCE, "the shuffle in line %d reads lane %u, which is not in its mask 0x%08x", thread.line,
         source, mask);
  }
  return before[source];
}

static void exchange(Warp &warp, unsigned mask) {
  uint64_t before[kWarp];
  unsigned votes = 0;
  for (unsigned lane = 0; lane < kWarp; lane++) {
    before[lane] = warp.lanes[lane].bits;
    if (mask >> lane & 1 && before[lane]) votes |= 1u << lane;
  }
  for (unsigned lane = 0; lane < kWarp; lane++) {
    Thread &thread = warp.lanes[lane];
    if (mask >> lane & 1) thread.bits = answer(thread, lane, mask, votes, before);
    if (mask >> lane & 1 && thread.meeting == emulated::kBring) warp.brought[lane] = thread.brought;
  }
}

// Whether all lanes of the mask wait for the same thing as the current thread does.
static bool complete(const Warp &warp, Thread &self) {
  if ((warp.meeting & self.mask) != self.mask) return false;
  for (unsigned left = self.mask; left; left &= left - 1) {
    const Thread &other = warp.lanes[__builtin_ctz(left)];
    if (same_meeting(self, other)) continue;
    if (name_each_other(self, other)) stop_clash(self, other);
    return false;
  }
  return true;
}

static void check_mask(const Warp &warp, unsigned me, unsigned mask, int width, int line) {
  if (!(mask & me))
    stop(EMULATION_MASK, "in line %d the thread is missing from its own mask 0x%08x", line, mask);
  if (mask & (warp.exited | ~warp.present))
    stop(EMULATION_DIVERGENT, "in line %d the mask 0x%08x names lanes that have exited (0x%08x)", line, mask,
         mask & (warp.exited | ~warp.present));
  if (width < 1 || width > kWarp || width & (width - 1))
    stop(EMULATION_SOURCE, "in line %d the shuffle's width %d is not a power of two up to 32", line, width);
}

uint64_t emulated::meet(Meeting meeting, unsigned mask, uint64_t bits, int argument, int width, int line) {
  Thread &self = *machine.thread;
  Warp &warp = *machine.warp;
  const unsigned me = 1u << lane_of(self);
  self.meeting = meeting;
  self.mask = mask;
  self.bits = bits;
  self.argument = argument;
  self.width = width;
  self.line = line;
  events++;
  check_mask(warp, me, mask, width, line);
  warp.meeting |= me;
  if (!complete(warp, self)) {
    wait_here();
    return self.bits;
  }
  exchange(warp, mask);
  share_observed(warp.lanes, kWarp, mask);
  if (meeting == kSyncWarp) order(warp, mask);
  warp.meeting &= ~mask;
  set_ready(warp, mask & ~me);
  maybe_yield(8);
  return self.bits;
}

const emulated::Brought *emulated::bring(const Brought &own, int line) {
  machine.thread->brought = own;
  meet(kBring, kFullMask, 0, 0, kWarp, line);
  return machine.warp->brought;
}

// ---- barriers and the end of threads

static void check_barrier(const Block &block, int line) {
  if (block.exited)
    stop(EMULATION_DIVERGENT,
         "divergent barrier: __syncthreads in line %d, but %u threads of the block have exited", line,
         block.exited);
  if (block.arrived && block.barrier_line != line)
    stop(EMULATION_DIVERGENT,
         "divergent barrier: __syncthreads in line %d, but other threads are at the one in line %d", line,
         block.barrier_line);
}

void emulated::sync_block(int line) {
  Thread &self = *machine.thread;
  Warp &warp = *machine.warp;
  Block &block = *machine.block;
  self.line = line;
  events++;
  check_barrier(block, line);
  block.barrier_line = line;
  warp.barrier |= 1u << lane_of(self);
  if (++block.arrived < block.threads_made) {
    wait_here();
    return;
  }
  block.arrived = 0;
  block.barriers++;
  share_observed(block.threads, block.threads_made, kFullMask);
  share_fenced(block.threads, block.threads_made, kFullMask);
  for (unsigned w = 0; w * kWarp < block.threads_made; w++) {
    block.warps[w].barrier = 0;
    set_ready(block.warps[w], block.warps[w].present);
  }
  run_another_warp(self.fiber);
}

// Whether the current block has nothing to do with what is traced.
static bool is_left_out() {
  const size_t launch = machine.launch - 1;
  const int64_t only = launch < EMULATION_LAUNCHES ? machine.only[launch] : 0;
  return only && (uint64_t)only != (uint64_t)machine.block->index + 1;
}

static void run_thread() {
  fiber_started();
  if (!is_left_out()) machine.body(machine.arguments);
  Thread &self = *machine.thread;
  Warp &warp = *machine.warp;
  Block &block = *machine.block;
  if (block.arrived)
    stop(EMULATION_DIVERGENT,
         "divergent barrier: the thread exits while %u others wait at __syncthreads in line %d",
         block.arrived, block.barrier_line);
  check_no_grid_barrier("the thread exits");
  warp.exited |= 1u << lane_of(self);
  if (++block.exited == block.threads_made) {
    machine.finished = &block;
    machine.thread = nullptr;
    fiber_switch(self.fiber, machine.main);
  }
  if (warp.ready)
    resume(self.fiber, warp);
  else
    run_another_warp(self.fiber);
}

// ---- blocks and launches

static void make_block(Block &block) {
  block.threads = (Thread *)map_zeros(kMaxThreads * sizeof(Thread));
  block.warps = (Warp *)map_zeros(kMaxThreads / kWarp * sizeof(Warp));
  block.shared = (char *)map_zeros(kStaticShared);
  block.shadow = (ShadowSlot *)map_zeros(kStaticShared * sizeof(ShadowSlot));
  block.dynamic = (char *)map_zeros(kDynamicShared);
  block.dynamic_shadow = (ShadowSlot *)map_zeros(kDynamicShared / kShadowUnit * sizeof(ShadowSlot));
}

// Stacks are made when the first block of this size comes; those of a warp together.
static void make_stacks(Block &block, unsigned threads) {
  static unsigned made[kMaxInFlight];
  unsigned &have = made[&block - machine.in_flight];
  if (have >= threads) return;
  const unsigned wanted = (threads + kWarp - 1) / kWarp * kWarp;
  fibers_create(&block.threads[have].fiber, wanted - have, sizeof(Thread), kWarp);
  have = wanted;
}

static void start_warp(Block &block, unsigned number) {
  Warp &warp = block.warps[number];
  const unsigned lanes = machine.threads - number * kWarp;
  warp.block = &block;
  warp.lanes = block.threads + number * kWarp;
  warp.present = lanes >= kWarp ? kFullMask : (1u << lanes) - 1;
  warp.ready = warp.meeting = warp.barrier = warp.exited = 0;
  warp.epoch = warp.partial = 0;
  warp.split = false;
  set_ready(warp, warp.present);
}

static void start_block(Block &block) {
  if (!block.threads) make_block(block);
  make_stacks(block, machine.threads);
  block.index =
      (unsigned)((machine.first_block + machine.blocks_started++ * machine.block_stride) % machine.blocks);
  block.serial = ++machine.serial;
  block.threads_made = machine.threads;
  block.exited = block.arrived = block.at_grid = 0;
  block.barriers = 0;
  block.came[0] = block.came[1] = 0;
  block.pending.count = 0;
  block.began = block.ended;
  for (unsigned t = 0; t < machine.threads; t++) {
    block.threads[t].index = t;
    block.threads[t].observed = block.threads[t].fenced = block.threads[t].events = 0;
    block.threads[t].waited = !emulated::overlaps;
    fiber_prepare(block.threads[t].fiber, run_thread);
  }
  for (unsigned w = 0; w * kWarp < machine.threads; w++) start_warp(block, w);
}

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b) {
  return b ? greatest_common_divisor(b, a % b) : a;
}

// Any stride that shares no factor with the number of blocks visits each of them once.
static void draw_order() {
  machine.first_block = draw() % machine.blocks;
  do machine.block_stride = 1 + draw() % machine.blocks;
  while (greatest_common_divisor(machine.block_stride, machine.blocks) != 1);
  machine.descending = draw() % 2;
  machine.limit = emulated::cooperative ? machine.blocks : 1 + draw() % kUsualInFlight;
  machine.blocks_started = machine.blocks_finished = 0;
}

static void finish_block(Block &block) {
  stop_clock(block);
  for (size_t i = 0; i < block.pending.count; i++) machine.unfenced.add(block.pending.items[i]);
  block.pending.count = 0;
  machine.blocks_finished++;
}

// Kernels that may have more dynamic shared memory than any may.
struct Allowance {
  const void *function;
  size_t bytes;
};
static List<Allowance> allowances;

static Allowance *allowance_of(const void *function) {
  for (size_t i = 0; i < allowances.count; i++)
    if (allowances.items[i].function == function) return &allowances.items[i];
  return nullptr;
}

int emulated::allow_shared(const void *function, int attribute, int bytes) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || bytes < 0 || bytes > kDynamicShared)
    return kInvalidValue;
  if (!allowance_of(function)) allowances.add(Allowance{function, 0});
  allowance_of(function)->bytes = (size_t)bytes;
  return 0;
}

// All blocks of the launch; a block that has finished makes room for the next one.
static void run_blocks() {
  for (unsigned i = 0; i < machine.limit && machine.blocks_started < machine.blocks; i++)
    start_block(machine.in_flight[i]);
  for (;;) {
    run_another_warp(machine.main);
    finish_block(*machine.finished);
    if (machine.blocks_started < machine.blocks)
      start_block(*machine.finished);
    else if (machine.blocks_finished == machine.blocks)
      break;
    else
      machine.finished->threads_made = 0;
  }
  machine.thread = nullptr;
}

int emulated::run_grid(const char *kernel, const void *function, unsigned blocks, unsigned threads,
                       size_t shared_bytes, void (*thread)(void *), void *arguments) {
  if (!blocks || blocks > INT32_MAX || !threads || threads > kMaxThreads) return kInvalidConfiguration;
  const Allowance *allowance = allowance_of(function);
  if (shared_bytes > (allowance ? allowance->bytes : (size_t)kPlainShared)) return kInvalidValue;
  if (cooperative && blocks > kMaxInFlight) return kCooperativeTooLarge;
  if (cooperative) forget_vectors();
  machine.grid_line = 0;
  machine.kernel = kernel;
  machine.launch++;
  machine.blocks = blocks;
  machine.threads = threads;
  machine.body = thread;
  machine.arguments = arguments;
  machine.shared_bytes = machine.shared_slots = 0;
  machine.dynamic_bytes = shared_bytes;
  machine.ready.count = 0;
  draw_order();
  align_clocks();
  forget_stores();
  run_blocks();
  publish_unfenced();
  for (unsigned i = 0; i < kMaxInFlight; i++) machine.in_flight[i].threads_made = 0;
  check_guards();
  return 0;
}
