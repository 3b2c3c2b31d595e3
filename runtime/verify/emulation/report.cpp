// SPDX-License-Identifier: Apache-2.0
/* The message that ends the program: see emulation.h. */
#include "emulation.h"

#include <signal.h>
#include <stdarg.h>
#include <sys/time.h>
#include <unistd.h>

static const char *const meeting_names[] = {
    // in the order of emulated::Meeting
    "__shfl_sync",   "__shfl_xor_sync", "__shfl_down_sync", "__shfl_up_sync",
    "__ballot_sync", "__any_sync",      "__all_sync",       "__syncwarp",
    "a tensor core",
};
static_assert(sizeof meeting_names / sizeof *meeting_names == emulated::kBring + 1, "a name for each");

// Where thread `t` of the current block is, as text; threads at the same place give the same text.
static void describe(unsigned t, char *text, size_t size) {
  const Thread &thread = machine.block->threads[t];
  const Warp &warp = machine.block->warps[t / kWarp];
  const unsigned lane = 1u << t % kWarp;
  if (warp.exited & lane)
    snprintf(text, size, "exited");
  else if (&thread == machine.thread)
    snprintf(text, size, "is the one above");
  else if (warp.meeting & lane)
    snprintf(text, size, "wait at %s(0x%08x) in line %d", meeting_names[thread.meeting], thread.mask,
             thread.line);
  else if (warp.barrier & lane)
    snprintf(text, size, "wait at __syncthreads in line %d", thread.line);
  else
    snprintf(text, size, "can run");
}

static void report_threads() {
  char here[128], next[128];
  unsigned first = 0, groups = 0;
  describe(0, here, sizeof here);
  for (unsigned t = 1; t <= machine.block->threads_made && groups < 12; t++) {
    if (t < machine.block->threads_made) describe(t, next, sizeof next);
    if (t < machine.block->threads_made && !strcmp(here, next)) continue;
    if (t - first > 1)
      fprintf(stderr, "  threads %u-%u %s\n", first, t - 1, here);
    else
      fprintf(stderr, "  thread %u %s\n", first, here);
    memcpy(here, next, sizeof here);
    first = t;
    groups++;
  }
}

void report_position() {
  if (!machine.thread || !machine.block) return;
  const unsigned thread = machine.thread->index;
  fprintf(stderr, "  in kernel %s (launch %u), block %u, thread %u (warp %u, lane %u)\n", machine.kernel,
          machine.launch, machine.block->index, thread, thread / kWarp, thread % kWarp);
  report_threads();
}

void stop(emulation_exit code, const char *format, ...) {
  va_list arguments;
  fprintf(stderr, "cbgen emulation: ");
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fprintf(stderr, "\n");
  report_position();
  fflush(nullptr);
  _exit(code);
}

// ---- reports that do not come from the emulator

static void out_of_time(int) {
  stop(EMULATION_TIME, "the time limit is used up; the kernel may be in an endless loop");
}

#ifdef EMULATION_SANITIZED
extern "C" void __sanitizer_set_death_callback(void (*callback)());

// UBSan's runtime may be a library apart from AddressSanitizer's, without that callback; it calls this
// instead.
extern "C" void __ubsan_on_report() {
  report_position();
}
#else
static void crashed(int signal) {
  stop(EMULATION_SIGNAL, "the thread crashed: %s", strsignal(signal));
}

static void catch_crash(int signal) {
  struct sigaction action = {};
  action.sa_handler = crashed;
  action.sa_flags = SA_ONSTACK | SA_RESETHAND;
  sigaction(signal, &action, nullptr);
}

static void catch_crashes() {
  stack_t stack = {};
  stack.ss_size = 64 * 1024;
  stack.ss_sp = map_zeros(stack.ss_size);
  sigaltstack(&stack, nullptr);
  catch_crash(SIGSEGV);
  catch_crash(SIGBUS);
  catch_crash(SIGFPE);
  catch_crash(SIGILL);
}
#endif

__attribute__((constructor)) static void install() {
  signal(SIGPROF, out_of_time);
#ifdef EMULATION_SANITIZED
  __sanitizer_set_death_callback(report_position);
#else
  catch_crashes();
#endif
  // For a program of its own (CBGEN_SELFTEST); the driver sets both for each job.
  const char *seed = getenv("CBGEN_EMULATION_SEED");
  seed_machine(seed ? strtoull(seed, nullptr, 10) : 1);
  const char *seconds = getenv("CBGEN_EMULATION_SECONDS");
  struct itimerval timer = {};
  timer.it_value.tv_sec = seconds ? atol(seconds) : 0;
  setitimer(ITIMER_PROF, &timer, nullptr);
}
