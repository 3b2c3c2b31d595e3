// SPDX-License-Identifier: Apache-2.0
/* Fibers: one stack per emulated CUDA thread, and a switch between two of them. */
#ifndef CBGEN_EMULATION_FIBER_H
#define CBGEN_EMULATION_FIBER_H

#include <stddef.h>

#if !defined(__x86_64__) && !defined(__aarch64__) && !defined(FIBER_UCONTEXT)
#define FIBER_UCONTEXT
#endif
#ifdef FIBER_UCONTEXT // may be defined from outside to try it
#include <ucontext.h>
#endif

struct Fiber {
  void *stack_pointer; // of a fiber that is not running
  char *stack;         // lowest byte; null for the program's own stack
  size_t size;
  void *fake_stack; // AddressSanitizer's
#ifdef FIBER_UCONTEXT
  ucontext_t context;
#endif
};

enum { kFiberStack = 64 * 4096 };

// `count` stacks, each with a guard page below it. Ends the program when there is no memory.
void fibers_create(Fiber *fibers, size_t count, size_t stride);

// The next switch to `fiber` calls `entry` on its empty stack. `entry` must not return.
void fiber_prepare(Fiber &fiber, void (*entry)());

// Runs `to` until somebody switches back. With `final` the fiber `from` is at its end.
void fiber_switch(Fiber &from, Fiber &to, bool final);

// First thing on a fresh fiber's stack.
void fiber_started();

#endif
