// SPDX-License-Identifier: Apache-2.0
/* Child processes: see process.h. */
#include "runtime/process.h"

#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static size_t vector_length(char *const *vector) {
  size_t length = 0;
  while (vector && vector[length]) length++;
  return length;
}

/* Whether "NAME=VALUE" sets a name that `replacements` sets, too. */
static int is_replaced(const char *entry, char *const *replacements, size_t count) {
  const size_t name = strcspn(entry, "=") + 1;
  for (size_t i = 0; i < count; i++)
    if (!strncmp(entry, replacements[i], name)) return 1;
  return 0;
}

/* The inherited environment with the replacements: an array to free, whose strings are borrowed. */
static char **merged_environment(char *const *replacements) {
  const size_t own = vector_length(replacements), inherited = vector_length(environ);
  char **merged = cb_alloc(own + inherited + 1, sizeof *merged);
  if (!merged) return NULL;
  size_t count = 0;
  for (size_t i = 0; i < inherited; i++)
    if (!is_replaced(environ[i], replacements, own)) merged[count++] = environ[i];
  for (size_t i = 0; i < own; i++) merged[count++] = replacements[i];
  merged[count] = NULL;
  return merged;
}

static int spawn(const struct cb_process *process, char **environment, pid_t *pid) {
  posix_spawn_file_actions_t actions;
  int error = posix_spawn_file_actions_init(&actions);
  if (error) return error;
  error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (!error)
    error =
        posix_spawn_file_actions_addopen(&actions, 1, process->output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (!error) error = posix_spawn_file_actions_adddup2(&actions, 1, 2);
  if (!error && process->directory)
    error = posix_spawn_file_actions_addchdir_np(&actions, process->directory);
  if (!error)
    error = posix_spawnp(pid, process->argv[0], &actions, NULL, (char *const *)process->argv, environment);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

/* Waits for the child; kills it at the deadline. The pause between looks grows to 4 ms. */
static int wait_until(pid_t pid, double deadline, int *timed_out) {
  struct timespec pause = {0, 200000};
  int status;
  for (;;) {
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    if (ended == pid) return status;
    if (ended < 0 && errno != EINTR) return -1;
    if (deadline > 0 && cb_seconds() > deadline && !*timed_out) {
      *timed_out = 1;
      kill(pid, SIGKILL);
    }
    nanosleep(&pause, NULL);
    if (pause.tv_nsec < 4000000) pause.tv_nsec += pause.tv_nsec / 4;
  }
}

enum cb_status cb_process_run(struct cb_process *process, struct cb_diag *diag) {
  process->found = process->exit_code = process->signal = process->timed_out = 0;
  char **environment = merged_environment((char *const *)process->environment);
  if (!environment) return cb_fail_memory(diag, "environment of a child process", 0);
  pid_t pid;
  const double start = cb_seconds();
  const int error = spawn(process, environment, &pid);
  cb_free(environment);
  if (error == ENOENT || error == EACCES) return CB_OK;
  if (error) return cb_fail(diag, cb_errno_status(error), "cannot start '%s': %s", process->argv[0], strerror(error));
  process->found = 1;
  const int status =
      wait_until(pid, process->seconds > 0 ? start + process->seconds : 0, &process->timed_out);
  process->elapsed = cb_seconds() - start;
  if (status == -1) return cb_fail(diag, CB_ERR_IO, "lost the child process '%s'", process->argv[0]);
  process->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  process->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return CB_OK;
}
