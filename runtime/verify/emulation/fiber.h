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
  Fiber *leader;     // the first of a group whose stacks AddressSanitizer takes for one; null: it is alone
  size_t group_size; // of a leader: from its stack's lowest byte to the last one's end
  void *fake_stack;  // AddressSanitizer's; of a group, its leader's
#ifdef FIBER_UCONTEXT
  ucontext_t context;
#endif
};

enum { kFiberStack = 64 * 4096 };

// `count` stacks in groups of `group`, each with a guard page below it. Ends the program when there is no memory.
void fibers_create(Fiber *fibers, size_t count, size_t stride, size_t group);

// The next switch to `fiber` calls `entry` on its empty stack. `entry` must not return.
void fiber_prepare(Fiber &fiber, void (*entry)());

// Runs `to` until somebody switches back.
void fiber_switch(Fiber &from, Fiber &to);

// First thing on a fresh fiber's stack.
void fiber_started();

#endif
