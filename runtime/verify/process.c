// SPDX-License-Identifier: Apache-2.0
/* Child processes: see process.h. */
#include "runtime/verify/process.h"

#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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
  if (!error)
    error = posix_spawnp(pid, process->argv[0], &actions, NULL, (char *const *)process->argv, environment);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

/* ---- children that are confined, or have a directory, which posix_spawn takes from glibc 2.29 on: between fork and
 * exec only calls that are safe in the child of a process with threads */

static void limit(int resource, unsigned long long most) {
  const struct rlimit limits = {most, most};
  if (most) setrlimit((__rlimit_resource_t)resource, &limits);
}

static void set_limits(const struct cb_confinement *confinement) {
  const struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  limit(RLIMIT_CPU, confinement->processor_seconds);
  limit(RLIMIT_AS, confinement->memory_bytes);
  limit(RLIMIT_FSIZE, confinement->file_bytes);
  limit(RLIMIT_NPROC, confinement->processes);
}

/* What the child tells before its program begins; after execve nothing. */
struct news {
  int network, error;
};

static void tell(int to, struct news news) {
  if (write(to, &news, sizeof news) < 0) _exit(127);
}

static void confine(const struct cb_confinement *confinement, int to, pid_t parent, struct news *news) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127); /* it died before that took effect */
  set_limits(confinement);
  news->network = unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  tell(to, *news);
}

static void become_program(const struct cb_process *process, char **environment, int to, pid_t parent) {
  struct news news = {0};
  const int in = open("/dev/null", O_RDONLY), out = open(process->output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (process->confinement) confine(process->confinement, to, parent, &news);
  if (in >= 0 && out >= 0 && dup2(in, 0) == 0 && dup2(out, 1) == 1 && dup2(out, 2) == 2 &&
      (!process->directory || !chdir(process->directory)))
    execvpe(process->argv[0], (char *const *)process->argv, environment); /* allocates nothing since glibc 2.24 */
  news.error = errno;
  tell(to, news);
  _exit(127);
}

/* 0, or an errno, as `spawn`. */
static int spawn_by_fork(struct cb_process *process, char **environment, pid_t *pid) {
  struct news news = {0};
  int ends[2];
  ssize_t got;
  const pid_t parent = getpid();
  if (pipe2(ends, O_CLOEXEC)) return errno;
  *pid = fork();
  const int failed = *pid < 0 ? errno : 0;
  if (!*pid) become_program(process, environment, ends[1], parent);
  close(ends[1]);
  while (!failed && ((got = read(ends[0], &news, sizeof news)) > 0 || (got < 0 && errno == EINTR))) continue;
  close(ends[0]);
  process->network = news.network;
  if (news.error) waitpid(*pid, NULL, 0);
  return failed ? failed : news.error;
}

/* Kills the processes that a confined child leaves behind. No other process has the child's number, since nobody has
 * waited for it yet. */
static void end_group(pid_t pid) {
  siginfo_t info = {0};
  if (!waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid == pid) kill(-pid, SIGKILL);
}

/* Waits for the child; kills it at the deadline. The pause between looks grows to 4 ms. */
static int wait_until(pid_t pid, double deadline, int has_group, int *timed_out) {
  struct timespec pause = {0, 200000};
  int status;
  for (;;) {
    if (has_group) end_group(pid);
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    if (ended == pid) return status;
    if (ended < 0 && errno != EINTR) return -1;
    if (deadline > 0 && cb_seconds() > deadline && !*timed_out) {
      *timed_out = 1;
      kill(has_group ? -pid : pid, SIGKILL);
    }
    nanosleep(&pause, NULL);
    if (pause.tv_nsec < 4000000) pause.tv_nsec += pause.tv_nsec / 4;
  }
}

enum cb_status cb_process_run(struct cb_process *process, struct cb_diag *diag) {
  process->found = process->exit_code = process->signal = process->timed_out = process->network = 0;
  char **environment = merged_environment((char *const *)process->environment);
  if (!environment) return cb_fail_memory(diag, "environment of a child process", 0);
  pid_t pid;
  const double start = cb_seconds();
  const int error = process->confinement || process->directory ? spawn_by_fork(process, environment, &pid)
                                                               : spawn(process, environment, &pid);
  cb_free(environment);
  if (error == ENOENT || error == EACCES) return CB_OK;
  if (error) return cb_fail(diag, cb_errno_status(error), "cannot start '%s': %s", process->argv[0], strerror(error));
  process->found = 1;
  const int status =
      wait_until(pid, process->seconds > 0 ? start + process->seconds : 0, process->confinement != NULL,
                 &process->timed_out);
  process->elapsed = cb_seconds() - start;
  if (status == -1) return cb_fail(diag, CB_ERR_IO, "lost the child process '%s'", process->argv[0]);
  process->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  process->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return CB_OK;
}
