// SPDX-License-Identifier: Apache-2.0
/* Numbers that know where they come from: what sum_t and vector_t are in a traced text (runtime/verify/trace_text.c).
 *
 * A traced number has the size of the number that it stands for, and holds the number of a node: the operation that
 * made it, its operands, its value, the line and the thread. So it goes through shuffles, shared memory, carry slots
 * and vectors as the plain one does, and every result leads back to the loads that it was made of. The values of nodes
 * are computed as the untraced text does, so the results have the same bits.
 */
#ifndef CBGEN_EMULATION_TRACED_H
#define CBGEN_EMULATION_TRACED_H

#include "jobs.h"
#include "prelude.h"

#include <type_traits>

namespace emulated {
uint64_t add_node(int kind, double value, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, long place = -1,
                  int region = -1);
const emulation_node &node_of(uint64_t id); // of one that no node has: memory that nobody has written
uint16_t add_entry(uint64_t id);            // a name of 16 bits
uint64_t entry_node(uint16_t entry);

// Where the text asks: lives as long as one of its functions; inner ones leave what the outermost says.
struct At {
  int region;
  long slot;
  explicit At(int line, int region = -1, long slot = -1);
  ~At();
  At(const At &) = delete;
  template <class V> V loaded(V x) const { return V::of(EMULATION_LOAD_X, x.number(), x.id); }
  template <class V> V value(V number, long i = 0) const {
    return V::of(EMULATION_VALUE, number.number(), number.id, 0, 0, slot + i, region);
  }
};
} // namespace emulated

template <class E> struct traced_entry { // an entry of x or y that is narrower than sums
  using raw = E;
  uint16_t id;
  uint64_t node() const { return emulated::entry_node(id); }
  static traced_entry made(uint64_t node) {
    traced_entry entry;
    entry.id = emulated::add_entry(node);
    return entry;
  }
  static double widened(E number) { return (double)(float)number; }
};

template <class T> struct traced {
  using raw = T;
  std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t> id;
  traced() = default;
  template <class U, class = std::enable_if_t<std::is_arithmetic<U>::value || std::is_same<U, half_t>::value ||
                                              std::is_same<U, bfloat16_t>::value>>
  traced(U number) {
    *this = of(EMULATION_NUMBER, T(number));
  }
  template <class E> explicit traced(traced_entry<E> entry) { *this = made(entry.node()); }
  template <class E> explicit operator traced_entry<E>() const {
    return traced_entry<E>::made(
        emulated::add_node(EMULATION_ROUND, traced_entry<E>::widened(E((float)number())), id));
  }
  static traced made(uint64_t node) {
    traced result;
    result.id = (decltype(id))node;
    return result;
  }
  static traced of(int kind, T value, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, long place = -1,
                   int region = -1) {
    return made(emulated::add_node(kind, (double)value, a, b, c, place, region));
  }
  static double widened(T number) { return (double)number; }
  uint64_t node() const { return id; }
  T number() const { return (T)emulated::node_of(id).value; }

  friend traced operator+(traced a, traced b) { return of(EMULATION_ADD, a.number() + b.number(), a.id, b.id); }
  friend traced operator-(traced a, traced b) { return of(EMULATION_SUBTRACT, a.number() - b.number(), a.id, b.id); }
  friend traced operator-(traced a) { return traced(-a.number()); }
  friend traced operator*(traced a, traced b) { return of(EMULATION_PRODUCT, a.number() * b.number(), a.id, b.id); }
  friend traced fma(traced a, traced b, traced c) {
    return of(EMULATION_ADD_PRODUCT, ::fma(a.number(), b.number(), c.number()), a.id, b.id, c.id);
  }
  friend traced fmin(traced a, traced b) { return of(EMULATION_LEAST, ::fmin(a.number(), b.number()), a.id, b.id); }
  friend traced fmax(traced a, traced b) { return of(EMULATION_GREATEST, ::fmax(a.number(), b.number()), a.id, b.id); }
  friend traced traced_or(traced a, traced b) {
    return of(EMULATION_OR, a.number() != 0 || b.number() != 0, a.id, b.id);
  }
  friend traced traced_and(traced a, traced b) {
    return of(EMULATION_AND, a.number() != 0 && b.number() != 0, a.id, b.id);
  }
  friend bool operator==(traced a, traced b) { return a.number() == b.number(); }
  friend bool operator!=(traced a, traced b) { return a.number() != b.number(); }
  traced &operator+=(traced b) { return *this = *this + b; }
};

template <class E> struct AlsoAs<traced_entry<E>> { using type = traced<float>; };

template <class V> void traced_take(void *vector, size_t count, int kind) {
  for (size_t i = 0; i < count; i++) {
    typename V::raw number;
    memcpy((void *)&number, (char *)vector + i * sizeof number, sizeof number);
    const V entry = V::made(emulated::add_node(kind, V::widened(number), 0, 0, 0, (long)i));
    memcpy((char *)vector + i * sizeof entry, (const void *)&entry, sizeof entry);
  }
}

template <class E> E traced_number(traced_entry<E> entry) { return E((float)emulated::node_of(entry.node()).value); }
template <class T> T traced_number(traced<T> entry) { return entry.number(); }

template <class V> void traced_give(void *vector, size_t count, unsigned long *nodes) {
  for (size_t i = 0; i < count; i++) {
    V entry;
    memcpy((void *)&entry, (char *)vector + i * sizeof entry, sizeof entry);
    const typename V::raw number = traced_number(entry);
    nodes[i] = entry.node();
    memcpy((char *)vector + i * sizeof number, (const void *)&number, sizeof number);
  }
}

// ---- tensor cores: see prelude.h, which adds in the same order
template <class T> inline void mma_f64_884(traced<T> (&d)[2], traced<T> a, traced<T> b, int line = __builtin_LINE()) {
  const emulated::At at(line);
  const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
  for (int k = 0; k < 4; k++) {
    const traced<T> left = __shfl_sync(kFullMask, a, 4 * g + k, 32, line);
    for (int j = 0; j < 2; j++) d[j] = fma(left, __shfl_sync(kFullMask, b, 4 * (2 * t + j) + k, 32, line), d[j]);
  }
}

#endif
