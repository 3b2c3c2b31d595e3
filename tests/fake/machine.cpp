// SPDX-License-Identifier: Apache-2.0
/* The emulator's thread: see machine.h.
 *
 * The thread's own stack is that of the fiber `host`. A grid runs on the fiber `runner`, which the scheduler
 * takes for its main program; when a kernel breaks a rule, stop() leaves all fibers as they are and goes back
 * to `host`. This file stands in place of the emulator's report.cpp, which ends the program.
 */
#include "machine.h"

#include "runtime/verify/emulation/emulation.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <initializer_list>

#ifdef EMULATION_SANITIZED
extern "C" void __asan_unpoison_memory_region(const volatile void *p, size_t bytes);
#else
static void __asan_unpoison_memory_region(const volatile void *, size_t) {}
#endif

namespace {

struct Job {
  const fake_kernel *kernel;
  unsigned blocks, threads;
  size_t shared_bytes;
  void **parameters;
  int cooperative, overlaps;
  char *message;
  size_t size;
  int result;
};

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
pthread_t worker;
bool started;
Job *volatile job; // the thread's own while it is set
Fiber host, runner;
bool running;

void run_job() {
  fiber_started();
  emulated::cooperative = job->cooperative;
  emulated::overlaps = job->overlaps;
  job->result = job->kernel->run(job->blocks, job->threads, job->shared_bytes, job->parameters);
  fiber_switch(runner, host);
}

void forget_stack(const Fiber &fiber) {
  if (fiber.stack) __asan_unpoison_memory_region(fiber.stack, fiber.size);
}

// The frames of a grid that was stopped are still on its stacks, with what surrounds their variables.
void forget_stacks() {
  forget_stack(runner);
  for (const Block &block : machine.in_flight)
    for (unsigned t = 0; block.threads && t < kMaxThreads; t++) forget_stack(block.threads[t].fiber);
}

// Forgets the threads of a grid.
void clear_machine() {
  if (job->result < 0) forget_stacks();
  machine.thread = nullptr;
  machine.block = nullptr;
  machine.ready.count = 0;
  for (Block &block : machine.in_flight) block.threads_made = 0;
}

// ---- crashes of the kernel

struct sigaction before_segv, before_bus, before_fpe;

void crashed(int signal, siginfo_t *info, void *) {
  if (!pthread_equal(pthread_self(), worker)) { // not the kernel's: happens again, under the old handler
    sigaction(signal,
              signal == SIGSEGV  ? &before_segv
              : signal == SIGBUS ? &before_bus
                                 : &before_fpe,
              nullptr);
    return;
  }
  stop(EMULATION_SIGNAL, "the thread crashed (%s) at address %p, which is none of this GPU's memory",
       strsignal(signal), info->si_addr);
}

void catch_crashes() {
  struct sigaction action = {};
  action.sa_sigaction = crashed;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(SIGSEGV, &action, &before_segv);
  sigaction(SIGBUS, &action, &before_bus);
  sigaction(SIGFPE, &action, &before_fpe);
}

void release_crashes() {
  sigaction(SIGSEGV, &before_segv, nullptr);
  sigaction(SIGBUS, &before_bus, nullptr);
  sigaction(SIGFPE, &before_fpe, nullptr);
}

void make_signal_stack() {
  stack_t stack = {};
  stack.ss_size = 64 * 1024;
  stack.ss_sp = map_zeros(stack.ss_size);
  sigaltstack(&stack, nullptr);
}

// ---- the thread

void run_grid_of_job() {
  if (!runner.stack) fibers_create(&runner, 1, sizeof runner, 1);
  fiber_prepare(runner, run_job);
  machine.main.stack = runner.stack;
  machine.main.size = runner.size;
  catch_crashes();
  running = true;
  fiber_switch(host, runner);
  running = false;
  release_crashes();
  clear_machine();
}

void *work(void *) {
  const char *seed = getenv("CBGEN_EMULATION_SEED");
  make_signal_stack();
  seed_machine(seed ? strtoull(seed, nullptr, 10) : 1);
  pthread_mutex_lock(&mutex);
  for (;;) {
    while (!job) pthread_cond_wait(&changed, &mutex);
    run_grid_of_job();
    job = nullptr;
    pthread_cond_broadcast(&changed);
  }
  return nullptr;
}

bool start() {
  sigset_t all, before;
  sigfillset(&all); // signals are for the application's threads, but for what a kernel does itself
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&all, own);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  started = !pthread_create(&worker, nullptr, work, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

} // namespace

void report_position() {}

// Threads that a check ends leave what they found to the caller, and the GPU goes on.
void stop(emulation_exit code, const char *format, ...) {
  char text[800];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (!running) {
    fprintf(stderr, "cbgen emulation: %s\n", text);
    abort();
  }
  if (machine.thread && machine.block && length < (int)sizeof text)
    snprintf(text + length, sizeof text - (size_t)length, "\n  in kernel %s, block %u, thread %u",
             machine.kernel, machine.block->index, machine.thread->index);
  if (code != EMULATION_CHECK) snprintf(job->message, job->size, "%s", text);
  job->result = -1;
  Fiber left = {};
  fiber_switch(left, host);
  __builtin_unreachable();
}

int machine_run(const fake_kernel *kernel, unsigned blocks, unsigned threads, size_t shared_bytes,
                void **parameters, int cooperative, int overlaps, char *message, size_t size) {
  Job mine = {kernel, blocks, threads, shared_bytes, parameters, cooperative, overlaps, message, size, 0};
  pthread_mutex_lock(&mutex);
  if (!started && !start()) {
    pthread_mutex_unlock(&mutex);
    snprintf(message, size, "no thread for the emulator");
    return -1;
  }
  job = &mine;
  pthread_cond_broadcast(&changed);
  while (job == &mine) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
  return mine.result;
}
