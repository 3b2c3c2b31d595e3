// SPDX-License-Identifier: Apache-2.0
/* What the tool says: messages, exit codes, and a line of progress for long stages. */
#include "tool/tool.h"

#include "base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct {
  enum cb_exit code;
  const char *meaning;
} exit_table[] = {
    {CB_EXIT_OK, "success"},
    {CB_EXIT_WRONG, "a kernel was found wrong (verify, run, bench), the cache damaged, or kernels differ (diff)"},
    {CB_EXIT_USAGE, "the command line makes no sense"},
    {CB_EXIT_INPUT, "the input is malformed, unsupported or too large for its types"},
    {CB_EXIT_IO, "a file could not be read or written"},
    {CB_EXIT_MISSING, "something is missing: a GPU driver, NVRTC, a host compiler"},
    {CB_EXIT_INTERNAL, "memory ran out, or cbgen broke one of its own rules"},
    {CB_EXIT_COMPILE, "the generated text did not compile"},
    {CB_EXIT_DEVICE, "a CUDA call failed"},
};

enum cb_exit cb_exit_code(enum cb_status status) {
  static const unsigned char codes[CB_STATUS_COUNT] = {
      [CB_OK] = CB_EXIT_OK,
      [CB_ERR_ARGUMENT] = CB_EXIT_USAGE,
      [CB_ERR_FORMAT] = CB_EXIT_INPUT,
      [CB_ERR_UNSUPPORTED] = CB_EXIT_INPUT,
      [CB_ERR_LIMIT] = CB_EXIT_INPUT,
      [CB_ERR_MEMORY] = CB_EXIT_INTERNAL,
      [CB_ERR_IO] = CB_EXIT_IO,
      [CB_ERR_MISSING] = CB_EXIT_MISSING,
      [CB_ERR_COMPILE] = CB_EXIT_COMPILE,
      [CB_ERR_DEVICE] = CB_EXIT_DEVICE,
      [CB_ERR_WRONG] = CB_EXIT_WRONG,
      [CB_ERR_INTERNAL] = CB_EXIT_INTERNAL,
  };
  return (unsigned)status < CB_STATUS_COUNT ? (enum cb_exit)codes[status] : CB_EXIT_INTERNAL;
}

void cb_exit_help(struct cb_text *text) {
  for (size_t i = 0; i < sizeof exit_table / sizeof *exit_table; i++)
    cb_text_add(text, "  %d  %s\n", exit_table[i].code, exit_table[i].meaning);
}

/* ---- progress: four times a second a thread looks whether the present stage has lasted long enough for a line. On a
 * terminal one line changes in place; elsewhere lines follow each other. All state is under the lock, so that a
 * message is never printed in the middle of a progress line. */

static struct {
  pthread_mutex_t lock;
  pthread_cond_t wake;
  pthread_t thread;
  int running, stopping, shown;
  int in_lines;      /* no terminal, and --verbose */
  double begun, due; /* cb_seconds */
  int64_t done, total;
  char stage[128];
} progress = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

enum { LINE_SECONDS = 10 }; /* between two lines on one stage */

static void erase_line(void) {
  if (progress.shown) fputs("\r\033[K", stderr);
  progress.shown = 0;
}

static void draw_line(void) {
  const double now = cb_seconds();
  if (!progress.stage[0] || now < progress.due) return;
  fprintf(stderr, "%scbgen: %s", progress.in_lines ? "" : "\r\033[K", progress.stage);
  if (progress.total > 0)
    fprintf(stderr, ", %.0f %%", 100.0 * (double)progress.done / (double)progress.total);
  fprintf(stderr, ", %.0f s%s", now - progress.begun, progress.in_lines ? "\n" : "");
  if (progress.in_lines) progress.due = now + LINE_SECONDS;
  progress.shown = !progress.in_lines;
}

static void *tick(void *unused) {
  (void)unused;
  pthread_mutex_lock(&progress.lock);
  while (!progress.stopping) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 250000000;
    if (until.tv_nsec >= 1000000000) {
      until.tv_nsec -= 1000000000;
      until.tv_sec++;
    }
    pthread_cond_timedwait(&progress.wake, &progress.lock, &until);
    if (!progress.stopping) draw_line();
  }
  erase_line();
  pthread_mutex_unlock(&progress.lock);
  return NULL;
}

void cb_progress_start(const struct cb_call *call) {
  const int is_terminal = isatty(STDERR_FILENO);
  if (call->quiet || progress.running || (!is_terminal && !call->verbose)) return;
  progress.in_lines = !is_terminal;
  /* Signals stay with the main thread: see outputs.c. */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  progress.stopping = 0;
  progress.running = !pthread_create(&progress.thread, NULL, tick, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void cb_progress_stage(const char *format, ...) {
  char stage[sizeof progress.stage];
  va_list args;
  va_start(args, format);
  vsnprintf(stage, sizeof stage, format, args);
  pthread_mutex_lock(&progress.lock);
  erase_line();
  cb_escape(progress.stage, sizeof progress.stage, stage, "");
  progress.done = progress.total = 0;
  progress.begun = cb_seconds();
  progress.due = progress.begun + (progress.in_lines ? LINE_SECONDS : 1);
  if (progress.in_lines) fprintf(stderr, "cbgen: %s\n", progress.stage);
  pthread_mutex_unlock(&progress.lock);
  va_end(args);
}

void cb_progress_report(void *user, const char *what, int64_t done, int64_t total) {
  (void)user, (void)what;
  pthread_mutex_lock(&progress.lock);
  progress.done = done;
  progress.total = total;
  pthread_mutex_unlock(&progress.lock);
}

void cb_progress_stop(void) {
  if (!progress.running) return;
  pthread_mutex_lock(&progress.lock);
  progress.stopping = 1;
  pthread_cond_signal(&progress.wake);
  pthread_mutex_unlock(&progress.lock);
  pthread_join(progress.thread, NULL);
  progress.running = 0;
}

static void say(const char *line) {
  pthread_mutex_lock(&progress.lock);
  erase_line();
  fprintf(stderr, "cbgen: %s\n", line);
  pthread_mutex_unlock(&progress.lock);
}

void cb_say(const char *format, ...) {
  char line[2048], printable[2048];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  cb_escape(printable, sizeof printable, line, "");
  say(printable);
}

void cb_say_message(const struct cb_diag *diag) {
  say(diag->message);
}

enum cb_status cb_print(const struct cb_text *text, struct cb_diag *diag) {
  if (text->failed) return cb_fail_memory(diag, "text for standard output", text->capacity);
  pthread_mutex_lock(&progress.lock);
  erase_line();
  pthread_mutex_unlock(&progress.lock);
  fwrite(text->bytes ? text->bytes : "", 1, text->length, stdout);
  if (fflush(stdout) || ferror(stdout)) return cb_fail(diag, CB_ERR_IO, "cannot write to standard output");
  return CB_OK;
}

void cb_human_bytes(char text[24], int64_t bytes) {
  static const char *const units[] = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) {
    snprintf(text, 24, "%d B", (int)bytes);
    return;
  }
  double amount = (double)bytes / 1000;
  int unit = 0;
  for (; amount >= 999.95 && unit < 3; unit++) amount /= 1000;
  snprintf(text, 24, "%.1f %s", amount, units[unit]);
}
