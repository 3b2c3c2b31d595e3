// SPDX-License-Identifier: Apache-2.0
/* Output files that appear together or not at all, and what a signal does to unfinished ones.
 *
 * The signal handler may only touch the registry below: fixed buffers, each with a flag that is set after the
 * path is complete and cleared before it changes. Between the creation of a temporary file and its entry in
 * the registry, and while several files are put in their places, a signal is only noted, and acted on right after. */
#include "tool/tool.h"

#include "base/file.h"

#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static struct {
  char path[PATH_MAX];
  atomic_int used;
} registry[CB_MAX_OUTPUTS];
static atomic_int busy, pending;

static void die_of(int number) {
  for (int i = 0; i < CB_MAX_OUTPUTS; i++)
    if (atomic_load(&registry[i].used)) unlink(registry[i].path);
  signal(number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  sigprocmask(SIG_UNBLOCK, &only, NULL); /* in a handler the signal itself is blocked */
  raise(number);
}

static void on_signal(int number) {
  if (atomic_load(&busy))
    atomic_store(&pending, number);
  else
    die_of(number);
}

void cb_outputs_watch_signals(void) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    struct sigaction before;
    /* nohup and background shells ignore some on purpose */
    if (!sigaction(numbers[i], NULL, &before) && before.sa_handler != SIG_IGN)
      sigaction(numbers[i], &action, NULL);
  }
}

static int register_path(const char *path) {
  if (!path || strlen(path) >= PATH_MAX) return -1;
  for (int i = 0; i < CB_MAX_OUTPUTS; i++) {
    if (atomic_load(&registry[i].used)) continue;
    strcpy(registry[i].path, path);
    atomic_store(&registry[i].used, 1);
    return i;
  }
  return -1;
}

static void unregister(int *slot) {
  if (*slot >= 0) atomic_store(&registry[*slot].used, 0);
  *slot = -1;
}

static void signals_wait(void) {
  atomic_store(&busy, 1);
}

static void signals_act(void) {
  atomic_store(&busy, 0);
  if (atomic_load(&pending)) die_of(atomic_load(&pending));
}

static enum cb_status check_place(const struct cb_outfile *file, const char *path, const char *input,
                                  struct cb_diag *diag) {
  if (!input || !cb_file_replaces(file, input)) return CB_OK;
  return cb_fail(diag, CB_ERR_ARGUMENT, "'%s' is the input, which would be lost; give '-o' another name", path);
}

enum cb_status cb_outputs_try(const char *path, const char *input, struct cb_diag *diag) {
  struct cb_outfile *file;
  enum cb_status s = cb_file_look(&file, path, diag);
  if (!s) s = check_place(file, path, input, diag);
  cb_file_abandon(file);
  return s;
}

static enum cb_status check_apart(const struct cb_outputs *outputs, const char *path, struct cb_diag *diag) {
  for (int i = 0; i < outputs->count; i++)
    if (cb_files_clash(outputs->files[i], outputs->files[outputs->count]))
      return cb_fail(diag, CB_ERR_ARGUMENT, "'%s' and another output are one file; give '-o' another name", path);
  return CB_OK;
}

enum cb_status cb_outputs_add(struct cb_outputs *outputs, const char *path, const void *bytes, size_t length,
                              struct cb_diag *diag) {
  if (outputs->count == CB_MAX_OUTPUTS) return cb_fail(diag, CB_ERR_INTERNAL, "more than 8 outputs");
  const int i = outputs->count;
  outputs->slots[i] = -1;
  if (!cb_file_is_stream(path)) signals_wait(); /* a pipe without a reader waits until an interrupt ends it */
  enum cb_status s = cb_file_create(&outputs->files[i], path, diag);
  if (!s) outputs->slots[i] = register_path(cb_file_draft(outputs->files[i]));
  signals_act();
  if (s) return s;
  s = check_place(outputs->files[i], path, outputs->input, diag);
  if (!s) s = check_apart(outputs, path, diag);
  outputs->count++;
  if (!s) cb_file_write(outputs->files[i], bytes, length);
  return s;
}

enum cb_status cb_outputs_commit(struct cb_outputs *outputs, struct cb_diag *diag) {
  signals_wait();
  const enum cb_status s = cb_files_commit(outputs->files, outputs->count, diag);
  for (int i = 0; i < outputs->count && !s; i++) unregister(&outputs->slots[i]);
  signals_act();
  return s;
}

void cb_outputs_abandon(struct cb_outputs *outputs) {
  for (int i = 0; i < outputs->count; i++) {
    cb_file_abandon(outputs->files[i]);
    unregister(&outputs->slots[i]);
  }
  outputs->count = 0;
}
