// SPDX-License-Identifier: Apache-2.0
/* The command line tool: what its parts share. Only this folder prints and exits.
 *
 *   main.c       which verb, help, version          arguments.c  the command line into a struct cb_call
 *   messages.c   messages, exit codes, progress     outputs.c    files that appear together, and signals
 *   job.c        the pipeline: read, plan, pack, emit
 *   candidates.c the recipes that a search compared
 *   sweep.c      one option at several values
 *   analyze.c generate.c verify.c trace.c run.c bench.c     one verb each
 *   report.c report_*.c html.c   everything about one matrix as a page of HTML
 *   solve.c solve_systems.c lp.c   systems of equations, many of them; linear programs; solve_parts.c what they share
 *   why.c why_report.c       slow thread blocks
 *   diff.c facts.c           two kernels compared, by what their texts say of themselves
 *   families.c   kernels that matrices share, and the files of them that come with the library
 *   cache.c calibrate.c      verbs that take no matrix: what lies in the cache, what the GPU can do
 *
 * A new verb is one file with its struct cb_verb and one row in main.c.
 */
#ifndef CBGEN_TOOL_TOOL_H
#define CBGEN_TOOL_TOOL_H

#include "analysis/options.h"
#include "analysis/reorder.h"
#include "base/status.h"
#include "base/text.h"
#include "codegen/source.h"

enum { CB_MAX_ARCHES = 16, CB_MAX_SWEPT = 64, CB_MAX_PLUGINS = 16, CB_MAX_SOLUTIONS = 8 };
enum { CB_MAX_MORE = 255, CB_MAX_NOTED = 64 };

/* Exit codes (`cbgen help exit-codes` prints the table of messages.c). */
enum cb_exit {
  CB_EXIT_OK = 0,
  CB_EXIT_WRONG = 1,
  CB_EXIT_USAGE = 2,
  CB_EXIT_INPUT = 3,
  CB_EXIT_IO = 4,
  CB_EXIT_MISSING = 5,
  CB_EXIT_INTERNAL = 6,
  CB_EXIT_COMPILE = 7,
  CB_EXIT_DEVICE = 8
};

/* What --emit names; several at once. */
enum cb_emit { CB_EMIT_CU = 1, CB_EMIT_DATA = 2, CB_EMIT_PTX = 4, CB_EMIT_CUBIN = 8, CB_EMIT_PLAN = 16 };

enum cb_preconditioner { CB_JACOBI, CB_BLOCK_JACOBI, CB_NO_PRECONDITIONER };

/* One option, and the values that it shall have one after the other. */
struct cb_sweep {
  const char *option;
  int count; /* 0: nothing is swept */
  const char *values[CB_MAX_SWEPT];
};

/* One call of the tool, as its command line says. Strings belong to argv. */
struct cb_call {
  const struct cb_verb *verb;
  const char *file, *output, *name;
  const char *other; /* the second one, with CB_TAKES_TWO */
  unsigned emit; /* bits of enum cb_emit; 0: not asked for */
  const char *arches[CB_MAX_ARCHES];
  int arches_count;
  enum cb_embed embed;
  int selftest, json, verbose, quiet, help;
  int candidates, no_baselines, graphs; /* bench: time every recipe; leave cuSPARSE out; capture batches */
  struct cb_sweep sweep;
  enum cb_reorder reorder; /* the matrix is looked at in another order */
  const char *plugins[CB_MAX_PLUGINS]; /* bench: files of baselines, see include/cbgen_baseline.h */
  int plugins_count;
  const char *solutions[CB_MAX_SOLUTIONS]; /* report: files that `solve --json` wrote */
  int solutions_count;
  int emulate;                  /* run: compare bits with the emulation */
  int64_t seed, repeat, device; /* repeat 0: as usual */
  const char *action;           /* of a verb with CB_TAKES_CACHE: its first word; `file` is then the second */
  const char *section;          /* of a cache entry, to show alone; NULL: all */
  int64_t row, block;           /* trace, why: what is looked at */
  const char *kernel;           /* trace: a kernel.cu to execute; NULL: the one that is planned */
  const char *gpu;              /* cache fill: file of a GPU's description; NULL: none */
  const char *more[CB_MAX_MORE]; /* behind `file`, of a verb with CB_TAKES_CACHE */
  int more_count;
  struct {
    const char *name, *value;
  } settings[CB_MAX_NOTED]; /* cache fill: options of the analysis, as they were given */
  int settings_count;
  int64_t limit;                /* bytes of the cache; -1: not asked for */
  const char *method, *rhs;     /* solve: NULL: cg, ones */
  const char *program_form;     /* likewise; NULL: by the cost model */
  const char *systems;          /* likewise: of many, a file or a number; NULL: there is one */
  double tolerance;             /* likewise, of the residual; 0: as usual */
  double weight, damping, lowest, highest; /* likewise: of methods */
  int64_t restart, block_size;
  int64_t iterations;           /* likewise; 0: 10 times the rows */
  enum cb_preconditioner preconditioner;
  uint64_t flags_given;         /* a bit for each row of arguments.c's table: see cb_call_has */
  const char *option_given;     /* name of the first option of the analysis that was given; NULL: none was */
  struct cb_options options;
};

/* Flags a verb takes beside the options of analysis/options.h, which all verbs but one take. */
enum cb_takes {
  CB_TAKES_OUTPUT = 1,
  CB_TAKES_EMIT = 2,
  CB_TAKES_ARCH = 4,
  CB_TAKES_TEXT = 8, /* --embed, --selftest */
  CB_TAKES_JSON = 16,
  CB_TAKES_SEED = 32,
  CB_TAKES_GPU = 64,     /* --device, --repeat */
  CB_TAKES_ARCHES = 128, /* --arch more than once */
  CB_TAKES_NAME = 256,
  CB_TAKES_BENCH = 512,    /* --candidates, --no-baselines, --graphs, --baseline */
  CB_TAKES_CACHE = 1024,   /* an action instead of a matrix, --limit, --plan, --source; no options of the analysis */
  CB_TAKES_NOTHING = 2048, /* no matrix, no options of the analysis */
  CB_TAKES_MEASURE = 4096, /* --tune=measure */
  CB_TAKES_RUN = 8192,     /* --emulate */
  CB_TAKES_SWEEP = 16384,  /* --sweep, --reorder */
  CB_TAKES_TWO = 32768,    /* two files, which may be keys of the cache */
  CB_TAKES_CLANG = 65536,  /* --clang, --check */
  CB_TAKES_TRACE = 131072, /* --row, --block, --kernel */
  CB_TAKES_REPORT = 1048576, /* --predicted, --solution */
  CB_TAKES_WHY = 262144,   /* --row */
  CB_TAKES_SOLVE = 1 << 26, /* --method, --rhs, --tolerance, --iterations, --preconditioner, --history, … */
  CB_TAKES_LP = 1 << 28,    /* --tolerance, --iterations */
  CB_TAKES_LIST = 1 << 27  /* '@LIST' in place of a matrix: a file that names some */
};
#define CB_WITHOUT_MATRIX (CB_TAKES_CACHE | CB_TAKES_NOTHING)

struct cb_verb {
  const char *name, *arguments, *summary;
  const char *details; /* a few lines for its help, each ending with a newline */
  const char *example;
  unsigned takes; /* bits of enum cb_takes */
  /* Refuses flags that have no effect in this call, before anything is read; NULL: `takes` is enough. */
  enum cb_status (*check)(const struct cb_call *call, struct cb_diag *diag);
  enum cb_status (*run)(const struct cb_call *call, struct cb_diag *diag);
};
extern const struct cb_verb cb_verb_analyze, cb_verb_generate, cb_verb_verify, cb_verb_run, cb_verb_bench,
    cb_verb_calibrate, cb_verb_cache, cb_verb_diff, cb_verb_trace, cb_verb_report, cb_verb_why, cb_verb_families,
    cb_verb_solve, cb_verb_lp;
extern const struct cb_verb *const cb_verb_table[]; /* ends with NULL */

/* ---- arguments.c */

/* Parses what follows the verb (call->verb is set). CB_ERR_ARGUMENT names what is wrong, with the nearest
 * name. */
enum cb_status cb_call_parse(struct cb_call *call, int count, char **arguments, struct cb_diag *diag);
/* Whether the flag --NAME was given. */
int cb_call_has(const struct cb_call *call, const char *name);
/* CB_ERR_ARGUMENT when something was given that has no effect on what the verb does. */
enum cb_status cb_call_check(const struct cb_call *call, struct cb_diag *diag);
/* "  -o, --output=FILE  help" lines of the flags that `takes` names. */
void cb_flags_help(struct cb_text *text, unsigned takes);
/* The candidate that `word` is likely a misspelling of, or NULL. `candidates` ends with NULL. */
const char *cb_nearest(const char *word, const char *const *candidates);

/* ---- messages.c */

enum cb_exit cb_exit_code(enum cb_status status);
void cb_exit_help(struct cb_text *text);
/* "cbgen: " and the message on standard error, as one line: control characters are escaped. */
void cb_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same with the message of a failure, whose lines stay. */
void cb_say_message(const struct cb_diag *diag);
/* Text to standard output; CB_ERR_IO when it does not get there. */
enum cb_status cb_print(const struct cb_text *text, struct cb_diag *diag);

/* Progress on standard error. On a terminal: a line for any stage that lasts over a second. Elsewhere, with --verbose:
 * a line for every stage, and another every ten seconds. With --quiet: nothing. One stage at a time. `stage` is a verb
 * and a subject: "reading 'a.mtx'". */
void cb_progress_start(const struct cb_call *call);
void cb_progress_stage(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cb_progress_report(void *user, const char *what, int64_t done,
                        int64_t total); /* for struct cb_progress */
void cb_progress_stop(void);

/* "12.3 MB", "415 B". */
void cb_human_bytes(char text[24], int64_t bytes);

/* ---- outputs.c */

/* Files that appear together or not at all, by the rules of base/file.h. First all are written under other names in the
 * same folders, then they are renamed in the order of opening. An interrupt removes those that are not renamed yet. */
enum { CB_MAX_OUTPUTS = 8 };
struct cb_outputs {
  struct cb_outfile *files[CB_MAX_OUTPUTS];
  int slots[CB_MAX_OUTPUTS]; /* in the registry of the signal handler; -1: none */
  int count;
  const char *input; /* a file that must not be replaced; NULL: none */
};
/* Finds out, before any work is done, whether `path` could be written to and is not the input (NULL: none). */
enum cb_status cb_outputs_try(const char *path, const char *input, struct cb_diag *diag);
enum cb_status cb_outputs_add(struct cb_outputs *outputs, const char *path, const void *bytes, size_t length,
                              struct cb_diag *diag);
enum cb_status cb_outputs_commit(struct cb_outputs *outputs, struct cb_diag *diag);
void cb_outputs_abandon(struct cb_outputs *outputs); /* also after commit */
/* On SIGINT, SIGTERM and SIGHUP: remove unfinished files, then die of the signal. */
void cb_outputs_watch_signals(void);

#endif
