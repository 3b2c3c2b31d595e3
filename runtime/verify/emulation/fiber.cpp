// SPDX-License-Identifier: Apache-2.0
/* Fibers: see fiber.h. A switch saves the callee-saved registers on the stack that it leaves. With
 * EMULATION_SANITIZED a switch to another group is announced to AddressSanitizer, whose reports name the right stack
 * then. One within a group, as most are, is not: announcing takes several times as long as switching.
 */
#include "fiber.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifdef EMULATION_SANITIZED
extern "C" void __sanitizer_start_switch_fiber(void **fake_stack, const void *bottom, size_t size);
extern "C" void __sanitizer_finish_switch_fiber(void *fake_stack, const void **bottom, size_t *size);
#else
static void __sanitizer_start_switch_fiber(void **, const void *, size_t) {}
static void __sanitizer_finish_switch_fiber(void *, const void **, size_t *) {}
#endif

// The program's own stack, learnt when a fiber is entered from it.
static const void *main_stack;
static size_t main_size;

static bool announced;         // whether AddressSanitizer knows of the switch that has begun
static void *fresh_fake_stack; // of the group that it enters

#if defined(__x86_64__)
enum { kSaved = 6 }; // rbp rbx r12 r13 r14 r15, below the return address
asm(R"(
  .text
  .type cbgen_switch_stack, @function
cbgen_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size cbgen_switch_stack, .-cbgen_switch_stack
)");
#elif defined(__aarch64__)
enum { kSaved = 20 }; // x19 … x30, d8 … d15
asm(R"(
  .text
  .type cbgen_switch_stack, %function
cbgen_switch_stack:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
  .size cbgen_switch_stack, .-cbgen_switch_stack
)");
#endif

#ifndef FIBER_UCONTEXT
void switch_stack(void **from, void *to) asm("cbgen_switch_stack");
#endif

static void out_of_memory() {
  fprintf(stderr, "cbgen emulation: no memory for the stacks of CUDA threads\n");
  _Exit(1);
}

void fibers_create(Fiber *fibers, size_t count, size_t stride, size_t group) {
  const size_t each = kFiberStack + 4096; // an odd number of pages: stacks do not share cache sets
  char *memory = (char *)mmap(nullptr, count * each, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) out_of_memory();
  for (size_t i = 0; i < count; i++) {
    Fiber &fiber = *(Fiber *)((char *)fibers + i * stride);
    if (mprotect(memory + i * each, 4096, PROT_NONE)) out_of_memory();
    fiber.stack = memory + i * each + 4096;
    fiber.size = kFiberStack;
    fiber.leader = (Fiber *)((char *)fibers + i / group * group * stride);
    fiber.leader->group_size = (size_t)(fiber.stack - fiber.leader->stack) + kFiberStack;
    fiber.fake_stack = nullptr;
  }
}

void fiber_prepare(Fiber &fiber, void (*entry)()) {
#ifdef FIBER_UCONTEXT
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack;
  fiber.context.uc_stack.ss_size = fiber.size;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, entry, 0);
#else
  // Tops are staggered by lines, or the live frames of all lanes would fall into the same sets of the L1
  // cache.
  const size_t colour = ((uintptr_t)fiber.stack / (kFiberStack + 4096) % 8) * 512;
  void **top = (void **)(fiber.stack + fiber.size - colour - 64);
#if defined(__x86_64__)
  top -= 2; // the return address of a function entered by `ret`, 16-byte aligned as the ABI wants it
  for (int i = 1; i <= kSaved; i++) top[-i] = nullptr;
  top[0] = (void *)entry;
  top[1] = nullptr;
  fiber.stack_pointer = top - kSaved;
#else
  for (int i = 1; i <= kSaved; i++) top[-i] = nullptr;
  top[-kSaved + 11] = (void *)entry; // x30
  fiber.stack_pointer = top - kSaved;
#endif
#endif
}

static void announce(Fiber &left, const Fiber &entered) {
  const void *stack = entered.stack ? entered.stack : main_stack;
  const size_t size = !entered.stack ? main_size : entered.leader ? entered.group_size : entered.size;
  __sanitizer_start_switch_fiber(&left.fake_stack, stack, size);
  fresh_fake_stack = entered.fake_stack;
}

void fiber_switch(Fiber &from, Fiber &to) {
  Fiber &left = from.leader ? *from.leader : from, &entered = to.leader ? *to.leader : to;
  announced = &left != &entered;
  if (announced) announce(left, entered);
#ifdef FIBER_UCONTEXT
  swapcontext(&from.context, &to.context);
#else
  switch_stack(&from.stack_pointer, to.stack_pointer);
#endif
  if (announced) __sanitizer_finish_switch_fiber(left.fake_stack, nullptr, nullptr);
}

void fiber_started() {
  if (!announced) return;
  const void *bottom = nullptr;
  size_t size = 0;
  __sanitizer_finish_switch_fiber(fresh_fake_stack, &bottom, &size);
  if (!main_stack) { // the first fiber ever is entered from the program's own stack
    main_stack = bottom;
    main_size = size;
  }
}
