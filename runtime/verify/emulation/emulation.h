// SPDX-License-Identifier: Apache-2.0
/* The emulated GPU: what the emulator's files share.
 *
 *   scheduler.cpp  blocks, warps and threads; where they meet; who runs next
 *   shared.cpp     shared memory with its shadow
 *   visibility.cpp stores to global memory that others do not see yet, and what they see instead
 *   grid.cpp       the barrier over all thread blocks, and vectors that a kernel writes and reads
 *   memory.cpp     device memory and the CUDA runtime calls
 *   report.cpp     the message that ends the program
 *   fiber.cpp      stacks and switches
 *   traced.cpp     the operations of a traced product (traced.h)
 *   driver.cpp     runs a file of jobs (jobs.h)
 *
 * Everything runs in one system thread. prelude.h stands before generated text: its namespace `emulated` is the
 * interface that these files implement.
 */
#ifndef CBGEN_EMULATION_H
#define CBGEN_EMULATION_H

#include "fiber.h"
#include "jobs.h"
#include "prelude.h"

// Thread blocks at a time: of a cooperative launch all, of others fewer.
enum { kWarp = 32, kMaxThreads = 1024, kMaxInFlight = 16, kUsualInFlight = 4, kStaticShared = 48 * 1024 };
// What a block may ask for at most on any GPU, and without cudaFuncSetAttribute.
enum { kDynamicShared = 227 * 1024, kPlainShared = 48 * 1024, kShadowUnit = 2 };

enum { kInvalidValue = 1, kInvalidConfiguration = 9, kCooperativeTooLarge = 720 }; // as CUDA numbers them

struct Block;
struct Warp;

// A point in the life of a block, for deciding which accesses are ordered.
struct Moment {
  uint32_t barrier; // __syncthreads that the block has passed
  uint32_t epoch;   // __syncwarp of the whole warp
  uint32_t partial; // __syncwarp of some lanes, since then
};

struct Thread {
  Fiber fiber;
  unsigned index;
  // What the thread brought to the place where it waits; `bits` is also what it takes away.
  emulated::Meeting meeting;
  unsigned mask;
  uint64_t bits;
  int argument, width, line;
  emulated::Brought brought;
  uint64_t observed; // Machine::clock at the last atomic of the thread, or of a lane that it has met since
  uint64_t fenced;   // what `observed` was at the last __threadfence that counts for the thread
  bool waited;       // for the kernels before this one
  uint64_t events;   // since it was started; those since it was entered are in emulated::events
};

struct Warp {
  Block *block;
  Thread *lanes;
  unsigned present;                         // lanes that exist
  unsigned ready, meeting, barrier, exited; // where they are; a lane in none of these is running
  emulated::Brought brought[kWarp];         // at the last meeting for it
  unsigned position;                        // in the list of warps with ready lanes
  uint32_t epoch, partial;
  bool split;                   // `known` is in use
  uint32_t known[kWarp][kWarp]; // [a][b]: lane b's accesses before this `partial` are ordered before lane a's
};

// A store_l2; it may be one that others cannot see yet.
struct Store {
  void *p;
  uint64_t bits;
  unsigned size, thread, block_index;
  uint32_t block; // its serial
  Moment moment;
};

// A value that a store or an atomic has replaced in this launch.
struct Replaced {
  Store by;
  uint64_t before;
  uint64_t at; // Machine::clock
  bool atomic;
};

// One access to a slot of shared memory.
struct Access {
  Moment moment;
  int line;
  unsigned thread;
};

struct ShadowSlot {
  uint32_t block; // serial of the block that the rest is about
  bool written, read, read_by_many;
  unsigned readers; // lanes of the warp of `reader` that have read, unless by many
  Access writer, reader;
};

template <class T> struct List { // a growing array of plain data
  T *items;
  size_t count, capacity;
  void add(const T &item) {
    if (count == capacity) {
      capacity = capacity ? 2 * capacity : 16;
      items = (T *)realloc((void *)items, capacity * sizeof(T));
      if (!items) abort();
    }
    items[count++] = item;
  }
};

struct Block {
  unsigned index;  // blockIdx.x
  uint32_t serial; // unlike that of any other block of the process
  unsigned threads_made, exited, arrived;
  int barrier_line;
  unsigned at_grid; // threads that wait at a grid_barrier
  uint32_t barriers;
  Thread *threads; // kMaxThreads of them, stacks included
  Warp *warps;
  char *shared;
  ShadowSlot *shadow;
  char *dynamic;              // dynamic shared memory
  ShadowSlot *dynamic_shadow; // of each kShadowUnit bytes
  size_t came[2];             // bytes that other blocks have stored here, of two meetings in turn
  List<Store> pending;        // in the order of each thread
  uint64_t began, ended;      // on the clock; `ended`: of the block before, in the same place
};

struct Machine {
  uint64_t random;
  // the launch
  const char *kernel;
  unsigned launch, blocks, threads;
  void (*body)(void *);
  void *arguments;
  int64_t only[EMULATION_LAUNCHES]; // of launch i + 1, the one block that does anything, plus 1; 0: all do
  uint64_t first_block, block_stride, blocks_started, blocks_finished;
  unsigned shared_bytes, shared_slots; // static
  size_t dynamic_bytes;
  uint32_t serial;
  // who runs
  Fiber main;
  Block *block;
  Warp *warp;
  Thread *thread; // null: the host part
  Block in_flight[kMaxInFlight];
  unsigned limit;  // of blocks in flight
  uint64_t waits;  // since the last number was handed on
  int grid_line;   // of the grid_barrier that threads wait at; 0: none do
  bool descending; // the last ready lane of a warp goes first
  List<Warp *> ready;
  Block *finished;             // a block whose last thread has just exited
  Thread *counted;             // whose events emulated::events are; null: nobody's
  // global memory
  List<Store> unfenced;    // of finished blocks: visible when the launch ends
  List<Replaced> replaced; // in the order of time
  uint64_t clock;          // replaced values of all launches
};
extern Machine machine;

// The next number of the seeded sequence.
static inline uint32_t draw() {
  machine.random ^= machine.random << 13;
  machine.random ^= machine.random >> 7;
  machine.random ^= machine.random << 17;
  return (uint32_t)(machine.random >> 32);
}

void seed_machine(uint64_t seed);
void let_others_run(); // another warp may come first here

// Whether what thread `thread` of the current block did at `moment` is ordered before what the current thread
// does now: the same thread, or a barrier in between that both took part in.
bool ordered(const Moment &moment, unsigned thread);
Moment now();

// Memory that starts as zeros and costs nothing until it is touched. Ends the program when there is none.
void *map_zeros(size_t bytes);

void check_guards();       // of all allocations; ends the program at an overwritten one
size_t live_allocations(); // and forgets them

void set_ready(Warp &warp, unsigned lanes);
void wait_here(); // the current thread waits, and others run, until it is made ready
void run_another_warp(Fiber &from);
void publish_all(); // stores of all blocks in flight

void forget_vectors();                        // a cooperative launch begins
void check_no_grid_barrier(const char *what); // ends the program if a thread waits at one

void forget_stores();    // a launch begins
void publish_unfenced(); // it ends
// What the latest of them knows, all know. `mask`: the lanes of each warp that take part.
void share_observed(Thread *threads, unsigned count, unsigned mask); // wherever threads meet
void share_fenced(Thread *threads, unsigned count, unsigned mask);   // at a barrier

// Ends the program with "cbgen emulation: …", where the current thread is, and what all others of the block
// wait for.
[[noreturn]] void stop(emulation_exit code, const char *format, ...) __attribute__((format(printf, 2, 3)));
void report_position(); // the two last parts alone, for the sanitizers' reports

// The nodes of a traced product and those that stand in y, to a file (jobs.h).
void write_trace(const char *path, const unsigned long *ids, size_t rows);

#endif
