// SPDX-License-Identifier: Apache-2.0
/* The device prelude of the emulation: it stands before a generated text that is compiled for the host, in place of the
 * text's own (templates/prelude.cu.in). Every name that a text may use is defined here, those of CUDA and its runtime
 * among them. Each CUDA thread is a fiber of the emulator; the namespace `emulated` is the emulator's part, and `line`
 * is where the kernel's text asks.
 */
#ifndef CBGEN_EMULATION_PRELUDE_H
#define CBGEN_EMULATION_PRELUDE_H

#pragma GCC diagnostic ignored "-Wunknown-pragmas"  // #pragma unroll
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define __CUDA_ARCH_LIST__ 900  // as if compiled for one that can overlap launches
#define CBGEN_KERNEL static
#define CBGEN_DEVICE static
#define CBGEN_MEMBER
/* What most time goes through: kernels of tests are compiled with -O0 and -Og, which inline what says so alone. */
#define EMULATED_INLINE __attribute__((always_inline)) inline
inline constexpr unsigned kFullMask = 0xffffffffu;
inline constexpr int kArch = 0;  // no GPU's
template <class T, int n> struct Vector { T at[n]; };
template <class T> struct Same { using type = T; };  // for parameters that take no part in deduction
#define __launch_bounds__(...)
#define __grid_constant__
#define __device__
#define __shared__ static

namespace emulated {  // provided by the emulator; `line` is where the kernel's text asks
enum Meeting { kShuffle, kShuffleXor, kShuffleDown, kShuffleUp, kBallot, kAny, kAll, kSyncWarp, kBring };
struct Brought { uint64_t words[3]; };
struct Position { unsigned x; };
struct Place { unsigned launch, bytes, slots; };  // of an array in the shared memory of the current launch
struct Index {
  long value;
  int line;
  template <class T> EMULATED_INLINE Index(T i, int l = __builtin_LINE()) : value((long)i), line(l) {}
};
uint64_t meet(Meeting meeting, unsigned mask, uint64_t bits, int argument, int width, int line);
const Brought *bring(const Brought &own, int line);  // what each lane of the warp brings, until these meet again
void sync_block(int line);
extern bool cooperative;  // the launch: all of its thread blocks are there at once
void await_progress(int line); // others run; it stops where none of them makes any progress
void note_progress();
void sync_grid(int line, bool seen = true); // `seen`: what any has stored before, all see
void read_vector(const void *p, int line);
void write_vector(const void *p, int line);
void fence();
void begin_atomic(const void *p);
void end_atomic(void *p, size_t size, const void *before);
void wait(const char *kernel);  // for the kernels before this one
extern bool waited;
extern bool overlaps;  // the launch: kernels before it may still run until it waits
void too_early(int line);
void note_changing(const void *p);  // in the array of `p` is what kernels before may write
bool may_change(const void *p);     // whether it is in such an array
constexpr size_t kWrittenMarks = 1 << 16;
extern unsigned char written[kWrittenMarks];  // by this launch; one mark for 64 bytes, and others far away
EMULATED_INLINE unsigned char &mark_of(const void *p) { return written[(uintptr_t)p / 64 % kWrittenMarks]; }
void check_unwritten(const void *p, size_t size, int line);
void *shared_slot(Place &place, long count, size_t size, long slot, bool write, int line);
void *cluster_slot(Place &place, unsigned block, long count, size_t size, long slot, int line);
void *dynamic_slot(long count, size_t size, long slot, bool write, int line);
void *dynamic_at(size_t byte, size_t size);
void *dynamic_there(const void *place, unsigned block, size_t size, int line);
void note_arrival(unsigned block, size_t size, uint32_t meeting);
void check_arrivals(size_t bytes, uint32_t meeting, int line);
void read_l2(const void *p, size_t size, void *value, int line);
void write_l2(void *p, size_t size, const void *value);
void misaligned(const void *p, size_t bytes, int line);
void failed_check(unsigned long long record, long long index, long long count, const char *what, int line);
int allow_shared(const void *function, int attribute, int bytes);
int run_grid(const char *kernel, const void *function, unsigned blocks, unsigned threads, size_t shared_bytes,
             void (*thread)(void *), void *arguments);
int allocate(void **p, size_t bytes);
void *part_of(void *whole, size_t offset, size_t bytes);
int release(void *p);
int copy(void *to, const void *from, size_t bytes, int kind);
int fill(void *p, int byte, size_t bytes);
extern uint64_t events;  // loads, stores and meetings of the current thread, since it was entered
void begin_clock(uint64_t *time, uint64_t *multiprocessor);
uint64_t end_clock();
}  // namespace emulated

extern emulated::Position threadIdx, blockIdx;
inline void wait_for_previous(const char *kernel = __builtin_FUNCTION()) { emulated::wait(kernel); }
inline void wait_behind(int, const char *kernel = __builtin_FUNCTION()) { emulated::wait(kernel); }
inline void start_next() {}
template <class T> inline const T *after_wait(const T *p) {
  emulated::note_changing(p);
  return p;
}
inline int64_t found_once(int64_t number) { return number; }

struct Index { int bytes, base, step, mask; };  // of a family's array (codegen/family.h)
/* What texts with checks call (templates/checks.cu.in). */
template <class I>
inline I check_index(unsigned long long record, I i, long long n, long long count, const char *what, int line) {
  if ((long long)i < 0 || (long long)i + n > count) emulated::failed_check(record, (long long)i, count, what, line);
  return i;
}
template <class T, class U>
inline T *check_place(unsigned long long record, T *place, U *begin, long long count, const char *what, int line) {
  const long long bytes = (long long)((uintptr_t)place - (uintptr_t)begin);
  if (bytes < 0 || bytes + (long long)sizeof(T) > count * (long long)sizeof(U))
    emulated::failed_check(record, bytes / (long long)sizeof(U), count, what, line);
  return place;
}

EMULATED_INLINE float float_from(uint32_t bits) {
  union { uint32_t bits; float value; } both = {bits};
  return both.value;
}
struct half_t {
  uint16_t bits;
  operator float() const {
    const uint32_t sign = uint32_t(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (exponent == 0) return float_from(sign | 0x33800000u) * float(fraction);  // in units of 2^-24
    return float_from(sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | fraction << 13);
  }
};
struct split_t {
  uint32_t words[2];
};
inline double from_parts(float head, int32_t rest) {
  double number = head;
  int64_t bits;
  memcpy(&bits, &number, sizeof bits);
  bits += rest;
  memcpy(&number, &bits, sizeof number);
  return number;
}
/* Complex numbers; float parts take doubles that are floats, as job files have them. */
template <class P> struct Complex {
  P re, im;
  Complex() = default;
  constexpr Complex(double real, double imaginary = 0) : re(P(real)), im(P(imaginary)) {}
};
struct alignas(8) complex64_t : Complex<float> {
  using Complex<float>::Complex;
};
struct alignas(16) complex128_t : Complex<double> {
  using Complex<double>::Complex;
};
template <class T> inline T conjugate(const T &number) { return T(number.re, -number.im); }
template <class T> inline T negative(const T &number) {
  if constexpr (__is_class(T)) return T(-number.re, -number.im);
  else return -number;
}
struct bfloat16_t {
  uint16_t bits;
  operator float() const { return float_from(uint32_t(bits) << 16); }
};


/* A float's bits as entries of x and y have them, rounded as by cvt.rn: without the last `count`. NaN is 0x7fff. */
inline uint32_t rounded_off(uint32_t bits, int count) {
  const uint32_t rest = bits & ((1u << count) - 1), tie = 1u << (count - 1), quotient = bits >> count;
  return quotient + (rest > tie || (rest == tie && (quotient & 1)));
}
inline uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
struct half_entry_t : half_t {
  half_entry_t() = default;
  explicit half_entry_t(float value) {
    const uint32_t word = bits_of(value), magnitude = word & 0x7fffffff, exponent = magnitude >> 23;
    const uint32_t significand = (magnitude & 0x7fffff) | 0x800000, sign = word >> 16 & 0x8000;
    if (magnitude > 0x7f800000) bits = 0x7fff;
    else if (exponent >= 143) bits = uint16_t(sign | 0x7c00);  // 2^16 and more
    else if (exponent > 112) bits = uint16_t(sign | (((exponent - 113) << 10) + rounded_off(significand, 13)));
    else if (exponent > 100) bits = uint16_t(sign | rounded_off(significand, int(126 - exponent)));  // of 2^-24
    else bits = uint16_t(sign);
  }
};
struct bfloat16_entry_t : bfloat16_t {
  bfloat16_entry_t() = default;
  explicit bfloat16_entry_t(float value) {
    const uint32_t word = bits_of(value), magnitude = word & 0x7fffffff;
    bits = magnitude > 0x7f800000 ? 0x7fff : uint16_t((word >> 16 & 0x8000) | rounded_off(magnitude, 16));
  }
};

/* What else an element in shared memory converts to at once. */
template <class T> struct AlsoAs {
  struct type {  // nothing
    explicit type(T) {}
  };
};
template <> struct AlsoAs<half_entry_t> { using type = float; };
template <> struct AlsoAs<bfloat16_entry_t> { using type = float; };

template <class T> struct SharedSlot {  // checks bounds, reads before writes, and races
  emulated::Place *place;  // null: in dynamic shared memory
  long count, i;
  int line;
  EMULATED_INLINE T *at(bool write) const {
    return (T *)(place ? emulated::shared_slot(*place, count, sizeof(T), i, write, line)
                       : emulated::dynamic_slot(count, sizeof(T), i, write, line));
  }
  operator T() const { return *at(false); }
  explicit operator typename AlsoAs<T>::type() const { return typename AlsoAs<T>::type(*at(false)); }
  T operator=(T value) const { return *at(true) = value; }
  T operator=(const SharedSlot &other) const { return *this = (T)other; }
  T operator+=(T value) const { return *this = (T)(*this) + value; }
  T operator-=(T value) const { return *this = (T)(*this) - value; }
  T operator*=(T value) const { return *this = (T)(*this) * value; }
};
template <class T, int n> struct Shared {
  emulated::Place place;
  SharedSlot<T> operator[](emulated::Index i) { return SharedSlot<T>{&place, n, i.value, i.line}; }
  T operator[](emulated::Index i) const {
    return SharedSlot<T>{const_cast<emulated::Place *>(&place), n, i.value, i.line};
  }
};
template <class T, int n> struct DynamicShared {
  SharedSlot<T> operator[](emulated::Index i) const { return SharedSlot<T>{nullptr, n, i.value, i.line}; }
};

// ---- clocks: an event is a nanosecond, and a cycle
struct WarpClock { uint64_t begin_ns, begin_cycle, end_ns, end_cycle, multiprocessor; };
inline WarpClock *clock_of_warp(WarpClock *clocks, int64_t first, int warps) {
  return clocks ? clocks + (first + int64_t(warps) * int64_t(blockIdx.x) + threadIdx.x / 32) : nullptr;
}
inline void begin_clock(WarpClock *clock) {
  if (!clock || threadIdx.x % 32) return;
  emulated::begin_clock(&clock->begin_ns, &clock->multiprocessor);
  clock->begin_cycle = clock->begin_ns;
}
inline void __syncwarp(unsigned mask, int line);
inline void end_clock(WarpClock *clock, int line = __builtin_LINE()) {
  __syncwarp(kFullMask, line);
  if (clock && threadIdx.x % 32 == 0) clock->end_ns = clock->end_cycle = emulated::end_clock();
}

template <class T> inline T load_l2(const T *p, int line = __builtin_LINE()) {
  emulated::events++;
  if ((uintptr_t)p % sizeof(T)) emulated::misaligned(p, sizeof(T), line);
  if (!emulated::waited) emulated::too_early(line);
  T value = *p;
  emulated::read_l2(p, sizeof value, &value, line);
  return value;
}
template <class T> EMULATED_INLINE T load(const T *p, int line = __builtin_LINE()) {
  emulated::events++;
  if ((uintptr_t)p % sizeof(T)) emulated::misaligned(p, sizeof(T), line);
  if (!emulated::waited && emulated::may_change(p)) emulated::too_early(line);
  if (emulated::mark_of(p)) emulated::check_unwritten(p, sizeof(T), line);
  return *p;
}
inline int load_index(const void *elements, const Index &index, int i, int line = __builtin_LINE()) {
  if (index.bytes == 1) return load((const uint8_t *)elements + i, line) & index.mask;
  if (index.bytes == 2) return load((const uint16_t *)elements + i, line) & index.mask;
  if (index.bytes == 4) return int(load((const uint32_t *)elements + i, line)) & index.mask;
  return index.base + index.step * i;
}
template <class T> EMULATED_INLINE T load_input(const T *p, int line = __builtin_LINE()) {
  if (!emulated::waited) emulated::too_early(line);
  if (emulated::cooperative) emulated::read_vector(p, line);
  return load(p, line);
}
template <class T, int n> inline Vector<T, n> load_entries(const T *p, int line = __builtin_LINE()) {
  constexpr size_t bytes = sizeof(Vector<T, n>), alignment = bytes < 16 ? bytes : 16;
  static_assert(bytes % 16 == 0 || bytes == 8 || bytes == 4, "no vector load of this size");
  if ((uintptr_t)p % alignment) emulated::misaligned(p, alignment, line);
  Vector<T, n> entries;
  for (int i = 0; i < n; i++) entries.at[i] = load_input(p + i, line);
  return entries;
}
template <class T, int n> inline void store_entries(T *p, const Vector<T, n> &entries, int line = __builtin_LINE()) {
  constexpr size_t bytes = sizeof(Vector<T, n>), alignment = bytes < 16 ? bytes : 16;
  static_assert(bytes % 16 == 0 || bytes == 8 || bytes == 4, "no vector store of this size");
  if ((uintptr_t)p % alignment) emulated::misaligned(p, alignment, line);
  for (int i = 0; i < n; i++) p[i] = entries.at[i];
}
template <class T> EMULATED_INLINE T load_vector(const T *p, int line = __builtin_LINE()) {
  return load_input(p, line);
}
template <class T> EMULATED_INLINE void store_vector(T *p, typename Same<T>::type value, int line = __builtin_LINE()) {
  emulated::events++;
  if ((uintptr_t)p % sizeof(T)) emulated::misaligned(p, sizeof(T), line);
  if (emulated::cooperative) emulated::write_vector(p, line);
  *p = value;
}
template <class T> inline T opaque(T number) { return number; }
inline void grid_barrier(uint32_t *, int, uint32_t, int line = __builtin_LINE()) { emulated::sync_grid(line); }
inline void cluster_barrier(int line = __builtin_LINE()) { emulated::sync_grid(line); }
template <class T> EMULATED_INLINE T load_stream(const T *p, int line = __builtin_LINE()) { return load(p, line); }
template <class T>
inline void store_l2(T *p, T value, int line = __builtin_LINE()) {
  emulated::events++;
  if ((uintptr_t)p % sizeof(T)) emulated::misaligned(p, sizeof(T), line);
  volatile T before = *p;  // lets the sanitizer see p: the emulator itself is not sanitized
  (void)before;
  emulated::write_l2(p, sizeof value, &value);
}
/* A number that carries its own message: it needs no fence. Who awaits it lets others run until it is there. */
template <class T>
inline void hand_on(T *place, typename Same<T>::type number, uint32_t bit, int line = __builtin_LINE()) {
  emulated::events++;
  if ((uintptr_t)place % sizeof(T)) emulated::misaligned(place, sizeof(T), line);
  unsigned char bytes[sizeof(T)];
  __builtin_memcpy(bytes, &number, sizeof(T));
  bytes[0] = (unsigned char)((bytes[0] & ~1u) | bit);
  __builtin_memcpy(&number, bytes, sizeof(T));
  *(volatile T *)place = number;
  emulated::note_progress();
}
template <class T, int n>
inline void await_entries(T (&found)[n], const T *from, const int (&at)[n], uint32_t bit, int line = __builtin_LINE()) {
  for (int i = 0; i < n; i++)
    for (found[i] = 0; at[i] >= 0;) {
      unsigned char bytes[sizeof(T)];
      found[i] = *(const volatile T *)(from + at[i]);
      __builtin_memcpy(bytes, &found[i], sizeof(T));
      const uint32_t last = bytes[0] & 1;
      bytes[0] = (unsigned char)(bytes[0] & ~1u);
      __builtin_memcpy(&found[i], bytes, sizeof(T));
      if (last == bit) break;
      emulated::await_progress(line);
    }
}
/* Stores of others are ordered where that is asked for, and only there. */
template <int warps, bool seen, int n, class T, int most>
inline void exchange(T (&numbers)[most], uint64_t *board, uint32_t *, uint32_t meeting, int blocks,
                     int line = __builtin_LINE()) {
  T *places = (T *)(board + 16l * blocks * (meeting % 2));
  const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
  for (int i = 0; i < most; i++)
    if (warp + i * warps < n && lane == 0) store_l2(places + n * (int)blockIdx.x + warp + i * warps, numbers[i], line);
  emulated::sync_grid(line, seen);
  for (int i = 0; i < most; i++) {
    numbers[i] = 0;
    for (int block = lane; warp + i * warps < n && block < blocks; block += 32)
      numbers[i] += load_l2(places + n * block + warp + i * warps, line);
  }
}
template <class T, int n>
inline Vector<T, n> load_stream_vector(const T *p, int line = __builtin_LINE()) {
  emulated::events++;
  constexpr size_t bytes = sizeof(Vector<T, n>), alignment = bytes < 16 ? bytes : 16;
  static_assert(bytes % 16 == 0 || bytes == 8 || bytes == 4 || bytes == 2, "no vector load of this size");
  if ((uintptr_t)p % alignment) emulated::misaligned(p, alignment, line);
  if (!emulated::waited && emulated::may_change(p)) emulated::too_early(line);
  Vector<T, n> vector;
  for (int i = 0; i < n; i++) vector.at[i] = p[i];
  return vector;
}
template <class T, int n> inline Vector<T, n> load_cached_vector(const T *p, int line = __builtin_LINE()) {
  return load_stream_vector<T, n>(p, line);
}
struct Stream {
  int policy;
};
template <class T> inline T load_hinted(const T *p, Stream, int line = __builtin_LINE()) { return load(p, line); }
template <class T, int n> inline Vector<T, n> load_hinted_vector(const T *p, Stream, int line = __builtin_LINE()) {
  return load_stream_vector<T, n>(p, line);
}
template <class T> inline T load_early(const T *p, int line = __builtin_LINE()) { return load(p, line); }
template <class T> inline T load_early_hinted(const T *p, Stream, int line = __builtin_LINE()) { return load(p, line); }
template <class T> inline T load_complex(const T *p, int line = __builtin_LINE()) { return load(p, line); }
template <class T> inline T load_complex_cached(const T *p, int line = __builtin_LINE()) { return load(p, line); }
template <class T> inline T atomicAdd(T *p, typename Same<T>::type value) {
  emulated::begin_atomic(p);
  T before = *p;
  *p = before + value;
  emulated::end_atomic(p, sizeof before, &before);
  return before;
}
template <class T> inline T atomicMin(T *p, typename Same<T>::type value) {
  emulated::begin_atomic(p);
  T before = *p;
  *p = value < before ? value : before;
  emulated::end_atomic(p, sizeof before, &before);
  return before;
}
template <class T> inline T atomicMax(T *p, typename Same<T>::type value) {
  emulated::begin_atomic(p);
  T before = *p;
  *p = before < value ? value : before;
  emulated::end_atomic(p, sizeof before, &before);
  return before;
}
inline void __threadfence() { emulated::fence(); }
inline void __threadfence_system() { emulated::fence(); }
inline void __syncthreads(int line = __builtin_LINE()) { emulated::sync_block(line); }

template <class T>
EMULATED_INLINE T shuffled(emulated::Meeting how, unsigned mask, T value, int lane, int width, int line) {
  union { uint64_t bits; T value; } moved = {0};
  moved.value = value;
  moved.bits = emulated::meet(how, mask, moved.bits, lane, width, line);
  return moved.value;
}
template <class T>
EMULATED_INLINE T __shfl_sync(unsigned mask, T v, int lane, int width = 32, int line = __builtin_LINE()) {
  return shuffled(emulated::kShuffle, mask, v, lane, width, line);
}
template <class T>
EMULATED_INLINE T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32, int line = __builtin_LINE()) {
  return shuffled(emulated::kShuffleXor, mask, v, bits, width, line);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32, int line = __builtin_LINE()) {
  return shuffled(emulated::kShuffleDown, mask, v, (int)by, width, line);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32, int line = __builtin_LINE()) {
  return shuffled(emulated::kShuffleUp, mask, v, (int)by, width, line);
}
template <class T> EMULATED_INLINE T shuffle(T value, int lane, int line = __builtin_LINE()) {
  return __shfl_sync(kFullMask, value, lane, 32, line);
}
template <class T> EMULATED_INLINE T shuffle_xor(T value, int bits, int line = __builtin_LINE()) {
  return __shfl_xor_sync(kFullMask, value, bits, 32, line);
}
template <class T> EMULATED_INLINE T shuffle_up(T value, int by, int line = __builtin_LINE()) {
  return __shfl_up_sync(kFullMask, value, (unsigned)by, 32, line);
}
inline unsigned __ballot_sync(unsigned mask, int vote, int line = __builtin_LINE()) {
  return (unsigned)emulated::meet(emulated::kBallot, mask, vote != 0, 0, 32, line);
}
inline int __any_sync(unsigned mask, int vote, int line = __builtin_LINE()) {
  return (int)emulated::meet(emulated::kAny, mask, vote != 0, 0, 32, line);
}
inline int __all_sync(unsigned mask, int vote, int line = __builtin_LINE()) {
  return (int)emulated::meet(emulated::kAll, mask, vote != 0, 0, 32, line);
}
inline void __syncwarp(unsigned mask = kFullMask, int line = __builtin_LINE()) {
  emulated::meet(emulated::kSyncWarp, mask, 0, 0, 32, line);
}

template <bool seen, class T, int n, int words>
inline void exchange_cluster(T (&numbers)[n], Shared<uint64_t, words> &board, uint32_t meeting, int blocks,
                             int line = __builtin_LINE()) {
  const int lane = (int)threadIdx.x % 32, first = int(meeting % 2) * (words / 2);
  for (int i = 0; i < n && threadIdx.x < 32; i++) {
    union { uint64_t bits; T value; } own = {0};
    own.value = shuffle(numbers[i], 0, line);
    const long slot = first + n * (long)blockIdx.x + i;
    if (lane < blocks)
      *(uint64_t *)emulated::cluster_slot(board.place, (unsigned)lane, words, 8, slot, line) = own.bits;
  }
  emulated::sync_grid(line, seen);
  for (int i = 0; i < n; i++) {
    union { uint64_t bits; T value; } found = {0};
    if (threadIdx.x < 32 && lane < blocks) found.bits = board[emulated::Index(first + n * lane + i, line)];
    numbers[i] = found.value;
  }
  __syncwarp(kFullMask, line);
}

/* Dynamic shared memory without shadows: what lies there for a whole solution is checked as vectors are. */
template <class T> inline T *shared_at(int byte) { return (T *)emulated::dynamic_at((size_t)byte, sizeof(T)); }
inline void mark(uint8_t *flag) {
  emulated::events++;
  *flag = 1;
}
inline void widen(uint32_t *first, uint32_t *end, uint32_t from, uint32_t to) {
  emulated::events++;
  if (from < *first) *first = from;
  if (to > *end) *end = to;
}
template <int threads> inline void copy_near(char *to, const char *from, uint32_t bytes, int line = __builtin_LINE()) {
  if ((uintptr_t)to % 16 || (uintptr_t)from % 16) emulated::misaligned(from, 16, line);
  for (uint32_t i = threadIdx.x; i < bytes; i += threads) to[i] = load(from + i, line);
}
template <class T> inline T load_near(const T *p, int line = __builtin_LINE()) { return load(p, line); }
template <class T> inline T load_near(const T *p, Stream, int line = __builtin_LINE()) { return load(p, line); }
template <class T, int n> inline Vector<T, n> load_near_vector(const T *p, int line = __builtin_LINE()) {
  return load_stream_vector<T, n>(p, line);
}
template <class T, int n> inline Vector<T, n> load_near_vector(const T *p, Stream, int line = __builtin_LINE()) {
  return load_stream_vector<T, n>(p, line);
}
template <class T> inline T load_there(const T *place, int block, int line = __builtin_LINE()) {
  return *(const T *)emulated::dynamic_there(place, (unsigned)block, sizeof(T), line);
}
inline void begin_arrivals(Shared<uint64_t, 2> &) {}
template <class T>
inline void store_there(T *place, typename Same<T>::type value, int block, Shared<uint64_t, 2> &, uint32_t meeting,
                        int line = __builtin_LINE()) {
  T *there = (T *)emulated::dynamic_there(place, (unsigned)block, sizeof(T), line);
  emulated::note_arrival((unsigned)block, sizeof(T), meeting);
  store_vector(there, value, line);
}
/* Fewer bytes than are awaited would be waited for without an end; more would end the next meeting too early. */
template <int places, class T, int n, int words>
inline void exchange_shared(T (&numbers)[n], Shared<T, words> &board, Shared<uint64_t, 2> &, uint32_t meeting,
                            int blocks, int bytes, int line = __builtin_LINE()) {
  const int lane = (int)threadIdx.x % 32, first = int(meeting % 2) * (words / 2);
  for (int i = 0; i < n && threadIdx.x < 32 && lane < blocks; i++) {
    const long slot = first + n * (long)blockIdx.x + i;
    *(T *)emulated::cluster_slot(board.place, (unsigned)lane, words, sizeof(T), slot, line) = numbers[i];
  }
  emulated::sync_grid(line, true);
  if (threadIdx.x == 0) emulated::check_arrivals((size_t)bytes, meeting, line);
  for (int i = 0; i < n; i++)
    numbers[i] = lane % places < blocks ? T(board[emulated::Index(first + n * (lane % places) + i, line)]) : T(0);
}

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __clz(int bits) { return bits ? __builtin_clz((unsigned)bits) : 32; }
inline int __clzll(long long bits) { return bits ? __builtin_clzll((unsigned long long)bits) : 64; }
EMULATED_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
EMULATED_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fmin(double a, double b) { return __builtin_fmin(a, b); }
inline float fmin(float a, float b) { return __builtin_fminf(a, b); }
inline double sqrt(double a) { return __builtin_sqrt(a); }
inline float sqrt(float a) { return __builtin_sqrtf(a); }
inline double fmax(double a, double b) { return __builtin_fmax(a, b); }
inline float fmax(float a, float b) { return __builtin_fmaxf(a, b); }
template <class T> inline T not_a_number() { return T(__builtin_nan("")); }
template <class T> inline T infinity() { return T(__builtin_inf()); }
template <class T> EMULATED_INLINE T min(T a, T b) { return b < a ? b : a; }
template <class T> EMULATED_INLINE T max(T a, T b) { return a < b ? b : a; }
EMULATED_INLINE int min(int a, int b) { return b < a ? b : a; } /* of enumerators, too */
EMULATED_INLINE int max(int a, int b) { return a < b ? b : a; }
EMULATED_INLINE unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
EMULATED_INLINE unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
template <class T> inline bool is_finite(T value) { return value - value == 0; }

// ---- tensor cores, made of what lanes bring: lane 4 g + t holds what templates/prelude.cu.in says
template <class T> inline const emulated::Brought *bring(const T &own, int line) {
  emulated::Brought words = {};
  static_assert(sizeof own <= sizeof words, "a lane brings so much at most");
  __builtin_memcpy(&words, &own, sizeof own);
  return emulated::bring(words, line);
}
template <class T> inline T brought(const emulated::Brought *all, int lane) {
  T own;
  __builtin_memcpy(&own, all + lane, sizeof own);
  return own;
}
inline void mma_f64_884(double (&d)[2], double a, double b, int line = __builtin_LINE()) {
  struct Own { double a, b; };
  const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const emulated::Brought *const all = bring(Own{a, b}, line);
  for (int k = 0; k < 4; k++) {
    const double left = brought<Own>(all, 4 * g + k).a;
    for (int j = 0; j < 2; j++) d[j] = fma(left, brought<Own>(all, 4 * (2 * t + j) + k).b, d[j]);
  }
}
template <class T> inline float half_of(uint32_t word, int k) { return T{(uint16_t)(word >> 16 * (k % 2))}; }
template <class T> inline void mma_1688(float (&d)[4], const uint32_t (&a)[2], uint32_t b, int line) {
  struct Own { uint32_t a[2], b; };
  const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const emulated::Brought *const all = bring(Own{{a[0], a[1]}, b}, line);
  for (int k = 0; k < 8; k++)
    for (int i = 0; i < 2; i++) {
      const float left = half_of<T>(brought<Own>(all, 4 * g + k / 2).a[i], k);
      for (int j = 0; j < 2; j++) {
        const float right = half_of<T>(brought<Own>(all, 4 * (2 * t + j) + k / 2).b, k);
        d[2 * i + j] = fma(left, right, d[2 * i + j]);
      }
    }
}
inline void mma_f16_1688(float (&d)[4], const uint32_t (&a)[2], uint32_t b, int line = __builtin_LINE()) {
  mma_1688<half_t>(d, a, b, line);
}
inline void mma_bf16_1688(float (&d)[4], const uint32_t (&a)[2], uint32_t b, int line = __builtin_LINE()) {
  mma_1688<bfloat16_t>(d, a, b, line);
}
inline float tf32_of(float value) { return float_from(bits_of(value) & 0xffffe000u); }
inline void mma_tf32_1688(float (&d)[4], const float (&a)[4], const float (&b)[2], int line = __builtin_LINE()) {
  struct Own { float a[4], b[2]; };
  const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const emulated::Brought *const all = bring(Own{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}}, line);
  for (int k = 0; k < 8; k++)
    for (int i = 0; i < 2; i++) {
      const float left = tf32_of(brought<Own>(all, 4 * g + k % 4).a[2 * (k / 4) + i]);
      for (int j = 0; j < 2; j++) {
        const float right = tf32_of(brought<Own>(all, 4 * (2 * t + j) + k % 4).b[k / 4]);
        d[2 * i + j] = fma(left, right, d[2 * i + j]);
      }
    }
}
inline uint32_t half_pair(uint16_t low, uint16_t high) { return low | uint32_t(high) << 16; }
inline Vector<float, 3> tf32_parts(float value) {
  Vector<float, 3> parts;
  for (int i = 0; i < 3; i++) {
    parts.at[i] = tf32_of(value);
    value -= parts.at[i];
  }
  return parts;
}
inline bool is_ordinary(float value) {
  const float size = value < 0 ? -value : value;
  return size == 0 || (size >= 0x1p-50f && size - size == 0);
}

// In a namespace of a text: its overloads of these, for complex numbers, hide none of the others.
#define CBGEN_OVERLOADED \
  using ::fma; \
  using ::is_finite; \
  using ::shuffle; \
  using ::shuffle_xor; \
  using ::shuffle_up; \
  using ::load_l2; \
  using ::store_l2;

using cudaError_t = int;
using cudaStream_t = void *;
enum { cudaSuccess = 0, cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };
enum { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
template <class T> inline cudaError_t cudaMalloc(T **p, size_t bytes) {
  return emulated::allocate((void **)p, bytes);
}
// A kernel's arrays share one allocation. Here each has a copy of its own, so that its ends are watched.
#define CBGEN_EMULATION
inline void *array_at(void *memory, size_t offset, size_t bytes) { return emulated::part_of(memory, offset, bytes); }
inline cudaError_t cudaFree(void *p) { return emulated::release(p); }
inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, int kind) {
  return emulated::copy(to, from, bytes, kind);
}
inline cudaError_t cudaMemset(void *p, int byte, size_t bytes) { return emulated::fill(p, byte, bytes); }
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
inline cudaError_t cudaGetDeviceCount(int *count) {
  *count = 1;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
template <class Kernel> inline cudaError_t cudaFuncSetAttribute(Kernel *kernel, int attribute, int value) {
  return emulated::allow_shared((const void *)kernel, attribute, value);
}

template <class... P>
cudaError_t launch_named(const char *name, void (*kernel)(P...), unsigned blocks, unsigned threads,
                         size_t shared_bytes, cudaStream_t, typename Same<P>::type... arguments) {
  auto thread = [=] { kernel(arguments...); };
  return emulated::run_grid(
      name, (const void *)kernel, blocks, threads, shared_bytes, [](void *t) { (*(decltype(thread) *)t)(); }, &thread);
}

struct dim3 {
  unsigned x;
  dim3(unsigned x = 1) : x(x) {}
};
enum { cudaLaunchAttributeProgrammaticStreamSerialization = 6 };
struct cudaLaunchAttribute {
  int id;
  struct {
    int programmaticStreamSerializationAllowed;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute *attrs;
  unsigned numAttrs;
};
template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(P...), A... arguments) {
  return launch_named("(before its wait_for_previous)", kernel, config->gridDim.x,
                      config->blockDim.x, config->dynamicSmemBytes, config->stream, P(arguments)...);
}

#endif
