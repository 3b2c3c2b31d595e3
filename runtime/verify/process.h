// SPDX-License-Identifier: Apache-2.0
/* Child processes: run a program with an argument vector (never a shell), its output in a file, and a time
 * limit. */
#ifndef CBGEN_RUNTIME_VERIFY_PROCESS_H
#define CBGEN_RUNTIME_VERIFY_PROCESS_H

#include "base/status.h"

/* For programs that nobody has read. There are limits on what one may use. It has no network, where the system permits
 * a program without rights to be cut off. It has a process group of its own, which is killed at the deadline and when
 * the program ends. It may read and write the files that the caller may. argv[0] is then a path. 0: no limit. */
struct cb_confinement {
  unsigned long long processor_seconds, memory_bytes, file_bytes, processes;
};

struct cb_process {
  const char *const *argv;        /* NULL-terminated; argv[0] is looked up in PATH */
  const char *const *environment; /* "NAME=VALUE"s that replace inherited ones, NULL-terminated; NULL: none */
  const char *directory;          /* to run in; NULL: the caller's */
  const char *output;             /* file that receives standard output and error */
  double seconds;                 /* wall clock after which the child is killed; 0: no limit */
  const struct cb_confinement *confinement; /* NULL: none */
  /* results */
  int found;     /* 0: there is no such program (everything below is then 0) */
  int exit_code; /* -1 when a signal ended it */
  int signal;
  int timed_out;
  double elapsed; /* wall clock */
  int network;    /* of a confined child: 1 when the system did not let it be cut off */
};

/* Runs the program to its end. An error is one of this side (CB_ERR_IO, CB_ERR_MEMORY); how the program fared
 * is in the results. Safe to call from several threads. Standard input is /dev/null. */
enum cb_status cb_process_run(struct cb_process *process, struct cb_diag *diag);

#endif
