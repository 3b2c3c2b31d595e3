// SPDX-License-Identifier: Apache-2.0
/* A compiled kernel as the fake driver sees it, and the C++ that makes one of generated text: modules.c
 * writes this file behind the text, and a table of FAKE_KERNEL rows behind this. C and C++. */
#ifndef CBGEN_TESTS_FAKE_KERNEL_H
#define CBGEN_TESTS_FAKE_KERNEL_H

#include <stddef.h>

/* 'p': a pointer; 's': a struct of pointers; 'i': an int64_t; 'v': another number. The list ends with 0 bytes. */
struct fake_parameter {
  unsigned bytes;
  char kind;
};

struct fake_kernel {
  const char *name;
  const struct fake_parameter *parameters;
  int (*run)(unsigned blocks, unsigned threads, size_t shared_bytes, void **parameters);
};

#ifdef __cplusplus
/* What a family's kernels get beside pointers: structs of numbers, known by a member (codegen/family.h); and
 * those of several vectors, where these lie. Complex alpha and beta, too. */
template <class T, class = void> struct FakeNumbers { static constexpr bool are = false; };
template <class T> struct FakeNumbers<T, decltype((void)&T::first_carry_sum)> { static constexpr bool are = true; };
template <class T> struct FakeNumbers<T, decltype((void)&T::first_row_sum)> { static constexpr bool are = true; };
template <class T> struct FakeNumbers<T, decltype((void)&T::im)> { static constexpr bool are = true; };
template <class T> struct FakeNumbers<T, decltype((void)&T::x_vector)> { static constexpr bool are = true; };
template <class T> struct FakeKind { static constexpr char kind = __is_class(T) && !FakeNumbers<T>::are ? 's' : 'v'; };
template <class T> struct FakeKind<T *> { static constexpr char kind = 'p'; };
template <> struct FakeKind<long> { /* int64_t */ static constexpr char kind = 'i'; };

/* Takes one parameter after the other from the list. */
template <class... Rest> struct FakeCall;
template <> struct FakeCall<> {
  template <class Call, class... Taken> static int with(Call call, void **, const Taken &...taken) {
    return call(taken...);
  }
};
template <class First, class... Rest> struct FakeCall<First, Rest...> {
  template <class Call, class... Taken> static int with(Call call, void **list, const Taken &...taken) {
    return FakeCall<Rest...>::with(call, list + 1, taken..., *(const First *)*list);
  }
};

template <class Kernel, Kernel kernel> struct FakeKernel;
template <class... P, void (*kernel)(P...)> struct FakeKernel<void (*)(P...), kernel> {
  static constexpr fake_parameter parameters[] = {{sizeof(P), FakeKind<P>::kind}..., {0, 0}};
  static int run(const char *name, unsigned blocks, unsigned threads, size_t shared_bytes, void **list) {
    return FakeCall<P...>::with(
        [=](const P &...arguments) {
          cudaFuncSetAttribute(kernel, 8, (int)shared_bytes); /* dynamic shared memory: asked for before */
          return launch_named(name, kernel, blocks, threads, shared_bytes, nullptr, arguments...);
        },
        list);
  }
};

#define FAKE_KERNEL(name)                                                                                    \
  {                                                                                                          \
#name, FakeKernel<decltype(&name), &name>::parameters,                                                   \
        [](unsigned blocks, unsigned threads, size_t shared_bytes, void **list) {                            \
          return FakeKernel<decltype(&name), &name>::run(#name, blocks, threads, shared_bytes, list);        \
        }   \
  }
#endif
#endif
