// SPDX-License-Identifier: Apache-2.0
/* Output files that appear together or not at all, and what a signal does to unfinished ones.
 *
 * The signal handler may only touch the registry below: fixed buffers, each with a flag that is set after the
 * path is complete and cleared before it changes. Between the creation of a temporary file and its entry in
 * the registry a signal is only noted, and acted on right after. */
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
static atomic_int creating, pending;

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
  if (atomic_load(&creating))
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

enum cb_status cb_outputs_add(struct cb_outputs *outputs, const char *path, const void *bytes, size_t length,
                              struct cb_diag *diag) {
  if (outputs->count == CB_MAX_OUTPUTS) return cb_fail(diag, CB_ERR_INTERNAL, "more than 8 outputs");
  const int i = outputs->count;
  outputs->slots[i] = -1;
  atomic_store(&creating, 1);
  const enum cb_status s = cb_file_create(&outputs->files[i], path, diag);
  if (!s) outputs->slots[i] = register_path(cb_file_draft(outputs->files[i]));
  atomic_store(&creating, 0);
  if (atomic_load(&pending)) die_of(atomic_load(&pending));
  if (s) return s;
  outputs->count++;
  cb_file_write(outputs->files[i], bytes, length);
  return CB_OK;
}

enum cb_status cb_outputs_commit(struct cb_outputs *outputs, struct cb_diag *diag) {
  for (int i = 0; i < outputs->count; i++) {
    const enum cb_status s = cb_file_commit(outputs->files[i], diag);
    if (s) return s;
    unregister(&outputs->slots[i]);
  }
  return CB_OK;
}

void cb_outputs_abandon(struct cb_outputs *outputs) {
  for (int i = 0; i < outputs->count; i++) {
    cb_file_abandon(outputs->files[i]);
    unregister(&outputs->slots[i]);
  }
  outputs->count = 0;
}
