// SPDX-License-Identifier: Apache-2.0
/* The command line, from two tables: the tool's own flags (below) and the options of analysis/options.h. */
#include "tool/sweep.h"
#include "tool/tool.h"

#include "base/memory.h"
#include "base/text.h"
#include "codegen/program/form.h"
#include "codegen/program/program.h"
#include "frontend/number.h"
#include "runtime/cache/cache.h"

#include <errno.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

struct flag {
  const char *name;
  char letter;       /* 0: none */
  const char *value; /* what the help calls it; NULL: takes none */
  unsigned takes;    /* verbs with any of these bits have it; 0: all */
  const char *help;
  enum cb_status (*set)(struct cb_call *call, const char *value, struct cb_diag *diag);
};

/* Splits VALUE at commas and looks each word up; the bits or indices are handed to `found`. */
static int word_index(const char *const *words, const char *word, size_t length) {
  for (int i = 0; words[i]; i++)
    if (strlen(words[i]) == length && !memcmp(words[i], word, length)) return i;
  return -1;
}

static enum cb_status set_output(struct cb_call *call, const char *value, struct cb_diag *diag) {
  if (!*value) return cb_fail(diag, CB_ERR_ARGUMENT, "'--output' needs a file name");
  call->output = value;
  return CB_OK;
}

static enum cb_status set_emit(struct cb_call *call, const char *value, struct cb_diag *diag) {
  static const char *const words[] = {"cu", "data", "ptx", "cubin", "plan", NULL};
  for (const char *word = value;; word++) {
    const size_t length = strcspn(word, ",");
    const int index = word_index(words, word, length);
    if (index < 0)
      return cb_fail(diag, CB_ERR_ARGUMENT,
                     "'--emit' does not know '%.*s'; it takes cu, data, ptx, cubin, plan", (int)length, word);
    call->emit |= 1u << index;
    word += length;
    if (!*word) return CB_OK;
  }
}

/* The words of --arch are cut in place: argv is the process's own to change. */
static enum cb_status set_arch(struct cb_call *call, const char *value, struct cb_diag *diag) {
  for (char *word = (char *)value; word;) {
    char *comma = strchr(word, ',');
    if (comma) *comma++ = 0;
    if (call->arches_count == CB_MAX_ARCHES)
      return cb_fail(diag, CB_ERR_ARGUMENT, "'--arch' takes at most %d architectures", CB_MAX_ARCHES);
    struct cb_target unused;
    const enum cb_status s = cb_target_find(&unused, word, diag);
    if (s) return s;
    call->arches[call->arches_count++] = word;
    word = comma;
  }
  if (call->arches_count > 1 && !(call->verb->takes & CB_TAKES_ARCHES))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'%s' takes one '--arch'; 'verify' takes several",
                   call->verb->name);
  return CB_OK;
}

static enum cb_status set_embed(struct cb_call *call, const char *value, struct cb_diag *diag) {
  static const char *const words[] = {"auto", "always", "never", NULL};
  const int index = word_index(words, value, strlen(value));
  if (index < 0) return cb_fail(diag, CB_ERR_ARGUMENT, "'--embed=%s': it takes auto, always or never", value);
  call->embed = (enum cb_embed)index;
  return CB_OK;
}

static enum cb_status set_selftest(struct cb_call *call, const char *value, struct cb_diag *diag) {
  static const char *const words[] = {"off", "on", NULL};
  const int index = word_index(words, value, strlen(value));
  if (index < 0) return cb_fail(diag, CB_ERR_ARGUMENT, "'--selftest=%s': it takes on or off", value);
  call->selftest = index;
  return CB_OK;
}

static enum cb_status set_epilogue(struct cb_call *call, const char *value, struct cb_diag *diag) {
  struct cb_statements *statements;
  const enum cb_status s = cb_statements_parse(&statements, value, "--epilogue", 1, diag);
  if (s) return s;
  cb_free(statements);
  call->options.epilogue = value;
  return CB_OK;
}

static enum cb_status set_name(struct cb_call *call, const char *value, struct cb_diag *diag) {
  for (const char *c = value; *c; c++)
    if ((unsigned char)*c < ' ' || *c == '"' || *c == '\\' || *c == 127)
      return cb_fail(diag, CB_ERR_ARGUMENT,
                     "'--name=%s': a name has no quotes, backslashes or control characters", value);
  if (!*value || strlen(value) > 60)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'--name=%s': a name has 1 to 60 characters", value);
  call->name = value;
  return CB_OK;
}

static enum cb_status parse_number(int64_t *number, const char *name, const char *value, int64_t least,
                                   int64_t most, struct cb_diag *diag) {
  char *end;
  errno = 0;
  const long long parsed = strtoll(value, &end, 10);
  if (errno || end == value || *end || parsed < least || parsed > most)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'--%s=%s': it takes a number from %lld to %lld", name, value,
                   (long long)least, (long long)most);
  *number = parsed;
  return CB_OK;
}

static enum cb_status set_seed(struct cb_call *call, const char *value, struct cb_diag *diag) {
  return parse_number(&call->seed, "seed", value, 0, INT64_MAX, diag);
}

static enum cb_status set_repeat(struct cb_call *call, const char *value, struct cb_diag *diag) {
  return parse_number(&call->repeat, "repeat", value, 1, 1000000, diag);
}

static enum cb_status set_device(struct cb_call *call, const char *value, struct cb_diag *diag) {
  return parse_number(&call->device, "device", value, 0, 1023, diag);
}

static enum cb_status set_row(struct cb_call *call, const char *value, struct cb_diag *diag) {
  return parse_number(&call->row, "row", value, 0, INT32_MAX, diag);
}

static enum cb_status set_block(struct cb_call *call, const char *value, struct cb_diag *diag) {
  return parse_number(&call->block, "block", value, 0, INT32_MAX, diag);
}

static enum cb_status set_kernel(struct cb_call *call, const char *value, struct cb_diag *diag) {
  if (!*value) return cb_fail(diag, CB_ERR_ARGUMENT, "'--kernel' needs the name of a kernel.cu");
  call->kernel = value;
  return CB_OK;
}

static enum cb_status set_method(struct cb_call *call, const char *value, struct cb_diag *diag) {
  struct cb_text names = {0};
  const char *name;
  enum cb_status s = CB_OK;
  for (int i = 0; (name = cb_program_name(i)); i++) {
    if (!strcmp(name, value)) call->method = value;
    cb_text_add(&names, "%s%s", i ? ", " : "", name);
  }
  if (!call->method || strcmp(call->method, value) != 0)
    s = cb_fail(diag, CB_ERR_ARGUMENT, "'--method=%s': it takes %s", value, cb_text_string(&names));
  cb_text_release(&names);
  return s;
}

/* `text`, of the option's value, as a number above 0. */
static enum cb_status parse_real(double *number, const char *option, const char *value, const char *text, double below,
                                 struct cb_diag *diag) {
  char line[64];
  const int length = snprintf(line, sizeof line, "%s\n", text);
  const char *end = length < (int)sizeof line ? cb_parse_double(line, line + length, number) : NULL;
  if (end && *end == '\n' && *number > 0 && *number < below) return CB_OK;
  return below < DBL_MAX
             ? cb_fail(diag, CB_ERR_ARGUMENT, "'--%s=%s': it takes a number between 0 and %g", option, value, below)
             : cb_fail(diag, CB_ERR_ARGUMENT, "'--%s=%s': it takes a number above 0", option, value);
}

/* "weight=0.5": a number of the method's. */
static enum cb_status set_parameter(struct cb_call *call, const char *value, struct cb_diag *diag) {
  const struct {
    const char *name;
    double *number, below;
  } known[] = {{"weight", &call->weight, DBL_MAX}, {"damping", &call->damping, 1}, {"lowest", &call->lowest, DBL_MAX},
               {"highest", &call->highest, DBL_MAX}};
  const size_t length = strcspn(value, "=");
  const char *number = value + length + (value[length] == '=');
  if (length == strlen("restart") && !strncmp(value, "restart", length))
    return parse_number(&call->restart, "parameter=restart", number, 1, CB_MOST_RESTART, diag);
  if (length == strlen("block_size") && !strncmp(value, "block_size", length))
    return parse_number(&call->block_size, "parameter=block_size", number, 2, CB_MOST_BLOCK, diag);
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strlen(known[i].name) == length && !strncmp(value, known[i].name, length))
      return parse_real(known[i].number, "parameter", value, number, known[i].below, diag);
  return cb_fail(diag, CB_ERR_ARGUMENT,
                 "'--parameter=%s': it takes restart, block_size, weight, damping, lowest or highest, as in weight=0.5",
                 value);
}

static enum cb_status set_program_form(struct cb_call *call, const char *value, struct cb_diag *diag) {
  struct cb_program_form form;
  if (!cb_program_form_find(&form, value))
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "'--program-form=%s': it takes grid, cluster, block or graph, each with '+steps', all but graph with "
                   "'+resident' and '+pipelined', and grid with '+matrix'", value);
  call->program_form = value;
  return CB_OK;
}

static enum cb_status set_systems(struct cb_call *call, const char *value, struct cb_diag *diag) {
  if (!*value) return cb_fail(diag, CB_ERR_ARGUMENT, "'--systems' needs a number, or the name of a .npz file");
  call->systems = value;
  return CB_OK;
}

static enum cb_status set_rhs(struct cb_call *call, const char *value, struct cb_diag *diag) {
  if (!*value) return cb_fail(diag, CB_ERR_ARGUMENT, "'--rhs' needs ones, product or the name of a file");
  call->rhs = value;
  return CB_OK;
}

static enum cb_status set_tolerance(struct cb_call *call, const char *value, struct cb_diag *diag) {
  return parse_real(&call->tolerance, "tolerance", value, value, 1, diag);
}

static enum cb_status set_iterations(struct cb_call *call, const char *value, struct cb_diag *diag) {
  return parse_number(&call->iterations, "iterations", value, 1, 100000000, diag);
}

static enum cb_status set_preconditioner(struct cb_call *call, const char *value, struct cb_diag *diag) {
  static const char *const words[] = {[CB_JACOBI] = "jacobi", [CB_BLOCK_JACOBI] = "blocks",
                                      [CB_NO_PRECONDITIONER] = "none", NULL};
  const int index = word_index(words, value, strlen(value));
  if (index < 0) return cb_fail(diag, CB_ERR_ARGUMENT, "'--preconditioner=%s': it takes jacobi, blocks or none", value);
  call->preconditioner = (enum cb_preconditioner)index;
  return CB_OK;
}

static enum cb_status set_limit(struct cb_call *call, const char *value, struct cb_diag *diag) {
  struct cb_diag why = {0};
  if (!cb_cache_size(&call->limit, value, &why)) return CB_OK;
  return cb_fail(diag, CB_ERR_ARGUMENT, "'--limit=%s': %.400s", value, why.message);
}

static enum cb_status set_gpu(struct cb_call *call, const char *value, struct cb_diag *diag) {
  if (!*value) return cb_fail(diag, CB_ERR_ARGUMENT, "'--gpu' needs a file that 'cbgen cache gpu' has written");
  call->gpu = value;
  return CB_OK;
}

static enum cb_status set_section(struct cb_call *call, const char *section, struct cb_diag *diag) {
  if (call->section && strcmp(call->section, section))
    return cb_fail(diag, CB_ERR_ARGUMENT, "one part of an entry at a time: '--%s' or '--%s'", call->section,
                   section);
  call->section = section;
  return CB_OK;
}

static enum cb_status set_plan(struct cb_call *call, const char *value, struct cb_diag *diag) {
  (void)value;
  return set_section(call, "plan", diag);
}

static enum cb_status set_source(struct cb_call *call, const char *value, struct cb_diag *diag) {
  (void)value;
  return set_section(call, "source", diag);
}

static enum cb_status set_json(struct cb_call *call, const char *value, struct cb_diag *diag) {
  (void)value, (void)diag;
  call->json = 1;
  return CB_OK;
}

static enum cb_status set_candidates(struct cb_call *call, const char *value, struct cb_diag *diag) {
  (void)value, (void)diag;
  call->candidates = 1;
  return CB_OK;
}

static enum cb_status set_graphs(struct cb_call *call, const char *value, struct cb_diag *diag) {
  (void)value, (void)diag;
  call->graphs = 1;
  return CB_OK;
}

static enum cb_status set_no_baselines(struct cb_call *call, const char *value, struct cb_diag *diag) {
  (void)value, (void)diag;
  call->no_baselines = 1;
  return CB_OK;
}

static enum cb_status set_sweep(struct cb_call *call, const char *value, struct cb_diag *diag) {
  if (call->sweep.count) return cb_fail(diag, CB_ERR_ARGUMENT, "'--sweep' is given twice; one option at a time");
  return cb_sweep_parse(&call->sweep, (char *)value, diag); /* argv is the process's own to change */
}

static enum cb_status set_reorder(struct cb_call *call, const char *value, struct cb_diag *diag) {
  static const char *const kinds[] = {
      [CB_REORDER_NONE] = "none", [CB_REORDER_SYMMETRIC] = "symmetric", [CB_REORDER_UNSYMMETRIC] = "unsymmetric"};
  for (int i = 0; i < 3; i++)
    if (!strcmp(value, kinds[i])) {
      call->reorder = (enum cb_reorder)i;
      return CB_OK;
    }
  return cb_fail(diag, CB_ERR_ARGUMENT, "'--reorder' is '%s'; it is symmetric, unsymmetric or none", value);
}

static enum cb_status set_baseline(struct cb_call *call, const char *value, struct cb_diag *diag) {
  if (!*value) return cb_fail(diag, CB_ERR_ARGUMENT, "'--baseline' needs the file of a shared library");
  if (call->plugins_count == CB_MAX_PLUGINS)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'--baseline' may be given %d times at most", CB_MAX_PLUGINS);
  call->plugins[call->plugins_count++] = value;
  return CB_OK;
}

static enum cb_status set_solution(struct cb_call *call, const char *value, struct cb_diag *diag) {
  if (!*value) return cb_fail(diag, CB_ERR_ARGUMENT, "'--solution' needs a file that 'cbgen solve --json' wrote");
  if (call->solutions_count == CB_MAX_SOLUTIONS)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'--solution' may be given %d times at most", CB_MAX_SOLUTIONS);
  call->solutions[call->solutions_count++] = value;
  return CB_OK;
}

static enum cb_status set_emulate(struct cb_call *call, const char *value, struct cb_diag *diag) {
  (void)value, (void)diag;
  call->emulate = 1;
  return CB_OK;
}

static enum cb_status set_verbose(struct cb_call *call, const char *value, struct cb_diag *diag) {
  (void)value, (void)diag;
  call->verbose = 1;
  return CB_OK;
}

static enum cb_status set_quiet(struct cb_call *call, const char *value, struct cb_diag *diag) {
  (void)value, (void)diag;
  call->quiet = 1;
  return CB_OK;
}

/* Asked for by cb_call_has. */
static enum cb_status set_given(struct cb_call *call, const char *value, struct cb_diag *diag) {
  (void)call, (void)value, (void)diag;
  return CB_OK;
}

static enum cb_status set_help(struct cb_call *call, const char *value, struct cb_diag *diag) {
  (void)value, (void)diag;
  call->help = 1;
  return CB_OK;
}

static const struct flag flag_table[] = {
    {"output", 'o', "FILE", CB_TAKES_OUTPUT, "write to FILE; '-' is standard output", set_output},
    {"emit", 0, "WHAT,…", CB_TAKES_EMIT, "of cu, data, ptx, cubin, plan; names follow -o", set_emit},
    {"arch", 0, "sm_NN", CB_TAKES_ARCH, "GPU to plan and compile for (sm_90): cbgen help architectures", set_arch},
    {"arch", 0, "sm_NN,…", CB_TAKES_ARCHES, "GPUs to plan and compile for: cbgen help architectures", set_arch},
    {"embed", 0, "auto|always|never", CB_TAKES_TEXT, "data inside the text; auto: up to 1 MiB (auto)", set_embed},
    {"name", 0, "NAME", CB_TAKES_NAME, "name in the text and of its functions (the file's)", set_name},
    {"epilogue", 0, "TEXT", CB_TAKES_TEXT, "statements for each row, in place of y: 'in b; out r; r = b - ax;'", set_epilogue},
    {"epilogue", 0, "TEXT", CB_TAKES_CLANG, "statements for each row, compared with the host's bit for bit", set_epilogue},
    {"selftest", 0, "on|off", CB_TAKES_TEXT, "carry expected results: 16 bytes per row (on)", set_selftest},
    {"seed", 0, "N", CB_TAKES_SEED, "of the vectors, and of the order of warps (1)", set_seed},
    {"device", 0, "N", CB_TAKES_GPU, "number of the GPU (0)", set_device},
    {"repeat", 0, "N", CB_TAKES_GPU, "batches that the median is taken of (7)", set_repeat},
    {"emulate", 0, NULL, CB_TAKES_RUN, "compare every bit of y with the emulation's: needs a C++ compiler",
     set_emulate},
    {"candidates", 0, NULL, CB_TAKES_BENCH, "time every recipe, not only the one chosen", set_candidates},
    {"no-baselines", 0, NULL, CB_TAKES_BENCH, "leave cuSPARSE out", set_no_baselines},
    {"graphs", 0, NULL, CB_TAKES_BENCH, "time captured products, without the host's pace", set_graphs},
    {"baseline", 0, "LIB.so", CB_TAKES_BENCH, "one more baseline, a plug-in (cbgen_baseline.h); repeatable", set_baseline},
    {"sweep", 0, "OPTION=V,W,…", CB_TAKES_SWEEP, "an option of the analysis at each of these values", set_sweep},
    {"reorder", 0, "symmetric|unsymmetric", CB_TAKES_SWEEP, "look at the matrix in the order that operators may have (none)",
     set_reorder},
    {"check", 0, NULL, CB_TAKES_CLANG, "execute it with checks of every index", set_given},
    {"clang", 0, NULL, CB_TAKES_CLANG, "let libclang read the text: what compilers do not check", set_given},
    {"row", 0, "R", CB_TAKES_TRACE, "the row of y to trace, from 0", set_row},
    {"row", 0, "R", CB_TAKES_WHY, "the row of y whose thread blocks to look at, from 0", set_row},
    {"block", 0, "B", CB_TAKES_TRACE, "the thread block whose rows to trace, from 0", set_block},
    {"kernel", 0, "kernel.cu", CB_TAKES_TRACE, "execute this text, which was made for the matrix", set_kernel},
    {"method", 0, "NAME", CB_TAKES_SOLVE, "cg|cg-mixed|bicgstab|minres|gmres|chebyshev|jacobi|power|pagerank (cg)", set_method},
    {"rhs", 0, "ones|product|FILE", CB_TAKES_SOLVE, "right side: ones, A times ones, or a number for each row (ones)",
     set_rhs},
    {"tolerance", 0, "T", CB_TAKES_SOLVE, "residual's norm, of that of the right side (1e-8; 1e-5 with f32)", set_tolerance},
    {"tolerance", 0, "T", CB_TAKES_LP, "of residuals and values, absolute and relative (1e-6; 1e-4 with f32)", set_tolerance},
    {"iterations", 0, "N", CB_TAKES_SOLVE, "the most (10 times the rows)", set_iterations},
    {"iterations", 0, "N", CB_TAKES_LP, "the most (100000)", set_iterations},
    {"preconditioner", 0, "jacobi|blocks|none", CB_TAKES_SOLVE, "divide residuals by the diagonal, its blocks, or not (jacobi)",
     set_preconditioner},
    {"parameter", 0, "NAME=V", CB_TAKES_SOLVE, "restart, block_size, weight, damping, lowest, highest", set_parameter},
    {"program-form", 0, "FORM", CB_TAKES_SOLVE, "grid, cluster, block, graph; +steps +resident +pipelined +matrix",
     set_program_form},
    {"systems", 0, "N|FILE.npz", CB_TAKES_SOLVE, "many at once: arrays 'values' and 'b'; or N, with values nearby", set_systems},
    {"history", 0, NULL, CB_TAKES_SOLVE, "print the residual of each iteration", set_given},
    {"solution", 0, "FILE.json", CB_TAKES_REPORT, "draw the residuals that 'cbgen solve --json' wrote; repeatable", set_solution},
    {"predicted", 0, NULL, CB_TAKES_REPORT, "measure nothing, even where there is a GPU", set_given},
    {"limit", 0, "SIZE", CB_TAKES_CACHE, "prune: what may stay, 500M or 2G ($CBGEN_CACHE_SIZE, or 4G)", set_limit},
    {"gpu", 0, "FILE", CB_TAKES_CACHE, "fill: for the GPU that this file describes (cbgen cache gpu)", set_gpu},
    {"transpose", 0, NULL, CB_TAKES_CACHE, "fill: the kernel of the transposed matrix", set_given},
    {"plan", 0, NULL, CB_TAKES_CACHE, "show: the plan's line alone", set_plan},
    {"source", 0, NULL, CB_TAKES_CACHE, "show: the CUDA text alone", set_source},
    {"json", 0, NULL, CB_TAKES_JSON, "print JSON", set_json},
    {"verbose", 'v', NULL, 0, "say more on standard error", set_verbose},
    {"quiet", 'q', NULL, 0, "say nothing but errors", set_quiet},
    {"help", 'h', NULL, 0, "this help", set_help},
};
enum { FLAGS = sizeof flag_table / sizeof *flag_table };
_Static_assert(FLAGS <= 64, "a bit of flags_given for each");

static int flag_applies(const struct flag *flag, unsigned takes) {
  return !flag->takes || (flag->takes & takes);
}

void cb_flags_help(struct cb_text *text, unsigned takes) {
  for (int i = 0; i < FLAGS; i++) {
    const struct flag *flag = &flag_table[i];
    if (!flag_applies(flag, takes)) continue;
    struct cb_text left = {0};
    if (flag->letter) cb_text_add(&left, "-%c, ", flag->letter);
    cb_text_add(&left, "--%s%s%s", flag->name, flag->value ? "=" : "", flag->value ? flag->value : "");
    /* "…" is three bytes wide in UTF-8 and one column on the screen */
    const int extra = strstr(cb_text_string(&left), "…") ? 2 : 0;
    cb_text_add(text, "  %-*s %s\n", 26 + extra, cb_text_string(&left), flag->help);
    cb_text_release(&left);
  }
}

/* Edits (insert, delete, replace, swap neighbours) that turn `a` into `b`; words longer than 31 count as far.
 */
static int edit_distance(const char *a, const char *b) {
  enum { MOST = 32 };
  const int rows = (int)strlen(a), cols = (int)strlen(b);
  if (rows >= MOST || cols >= MOST) return MOST;
  int cost[MOST][MOST];
  for (int i = 0; i <= rows; i++) cost[i][0] = i;
  for (int j = 0; j <= cols; j++) cost[0][j] = j;
  for (int i = 1; i <= rows; i++) {
    for (int j = 1; j <= cols; j++) {
      int best = cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
      if (cost[i - 1][j] + 1 < best) best = cost[i - 1][j] + 1;
      if (cost[i][j - 1] + 1 < best) best = cost[i][j - 1] + 1;
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && cost[i - 2][j - 2] + 1 < best)
        best = cost[i - 2][j - 2] + 1;
      cost[i][j] = best;
    }
  }
  return cost[rows][cols];
}

const char *cb_nearest(const char *word, const char *const *candidates) {
  const char *best = NULL;
  int least = (int)strlen(word) / 3 + 1; /* a longer word may have more errors */
  if (least > 3) least = 3;
  for (; *candidates; candidates++) {
    const int distance = edit_distance(word, *candidates);
    if (distance > least || (best && distance == least)) continue;
    best = *candidates;
    least = distance;
  }
  return best;
}

/* Flags that have another name now: whoever gives the old one is told the new one. */
static const struct {
  const char *name, *substitute;
} renamed_flags[] = {{"no-rivals", "no-baselines"}};

static enum cb_status check_renamed(const char *name, struct cb_diag *diag) {
  for (size_t i = 0; i < sizeof renamed_flags / sizeof *renamed_flags; i++)
    if (!strcmp(name, renamed_flags[i].name))
      return cb_fail(diag, CB_ERR_ARGUMENT, "option '--%s' was renamed; use '--%s'", name, renamed_flags[i].substitute);
  return CB_OK;
}

/* NULL: there is none of that name. */
static const struct cb_option *find_option(const char *name) {
  const int number = cb_option_find(name);
  return number < 0 ? NULL : cb_option_at(number);
}

/* Whether the options of the analysis mean something: `cache fill` makes kernels. */
static int takes_options(const struct cb_call *call) {
  return !(call->verb->takes & CB_WITHOUT_MATRIX) || (call->action && !strcmp(call->action, "fill"));
}

static enum cb_status fail_unknown(const struct cb_call *call, const char *name, struct cb_diag *diag) {
  enum cb_status s = cb_options_check_removed(name, diag);
  if (!s) s = check_renamed(name, diag);
  if (s) return s;
  enum { MOST = 255 };
  const char *candidates[MOST + 1];
  int count = 0, elsewhere = find_option(name) != NULL;
  for (int i = 0; i < FLAGS; i++) elsewhere |= !strcmp(flag_table[i].name, name);
  if (elsewhere)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'--%s' means nothing to '%s'", name, call->verb->name);
  for (int i = 0; i < FLAGS; i++)
    if (flag_applies(&flag_table[i], call->verb->takes)) candidates[count++] = flag_table[i].name;
  const int analyses = takes_options(call);
  const struct cb_option *option;
  for (int i = 0; analyses && count < MOST && (option = cb_option_at(i)); i++) candidates[count++] = option->name;
  candidates[count] = NULL;
  const char *nearest = cb_nearest(name, candidates);
  if (nearest)
    return cb_fail(diag, CB_ERR_ARGUMENT, "unknown option '--%s'; did you mean '--%s'", name, nearest);
  return cb_fail(diag, CB_ERR_ARGUMENT, "unknown option '--%s'; see 'cbgen help %s'%s", name, call->verb->name,
                 analyses ? " and 'cbgen help options'" : "");
}

/* What an option given without a value means: "on" where that is one of its words. */
static const char *bare_value(const struct cb_option *option) {
  for (int i = 0; option->words && option->words[i]; i++)
    if (!strcmp(option->words[i], "on")) return "on";
  return NULL;
}

/* For whoever sets them elsewhere. */
static enum cb_status note_setting(struct cb_call *call, const char *name, const char *value, struct cb_diag *diag) {
  if (!(call->verb->takes & CB_TAKES_CACHE)) return CB_OK;
  if (call->settings_count == CB_MAX_NOTED)
    return cb_fail(diag, CB_ERR_ARGUMENT, "there are more than %d options", CB_MAX_NOTED);
  call->settings[call->settings_count].name = name;
  call->settings[call->settings_count++].value = value;
  return CB_OK;
}

static enum cb_status set_flag(struct cb_call *call, const struct flag *flag, const char *value,
                               struct cb_diag *diag) {
  call->flags_given |= UINT64_C(1) << (flag - flag_table);
  return flag->set(call, value, diag);
}

/* One "--NAME[=VALUE]"; *next is the following argument or NULL, set to NULL when it was used as the value.
 */
static enum cb_status parse_long(struct cb_call *call, const char *argument, const char **next,
                                 struct cb_diag *diag) {
  char name[64];
  const size_t length = strcspn(argument, "=");
  if (length >= sizeof name) return cb_fail(diag, CB_ERR_ARGUMENT, "unknown option '--%.40s…'", argument);
  memcpy(name, argument, length);
  name[length] = 0;
  const char *value = argument[length] ? argument + length + 1 : NULL;
  const struct flag *flag = NULL;
  for (int i = 0; i < FLAGS && !flag; i++)
    if (flag_applies(&flag_table[i], call->verb->takes) && !strcmp(flag_table[i].name, name))
      flag = &flag_table[i];
  const struct cb_option *option = flag || !takes_options(call) ? NULL : find_option(name);
  if (!flag && !option) return fail_unknown(call, name, diag);
  if (flag && !flag->value && value) return cb_fail(diag, CB_ERR_ARGUMENT, "'--%s' takes no value", name);
  if (option && !value) value = bare_value(option);
  if (!value && (option || flag->value)) {
    if (!*next) return cb_fail(diag, CB_ERR_ARGUMENT, "'--%s' needs a value: '--%s=VALUE'", name, name);
    value = *next;
    *next = NULL;
  }
  if (flag) return set_flag(call, flag, value, diag);
  if (!call->option_given) call->option_given = option->name;
  const enum cb_status s = note_setting(call, option->name, value, diag);
  return s ? s : cb_options_set(&call->options, name, value, diag);
}

/* One "-X…": a letter with a value ("-oFILE", "-o FILE"), or letters without ("-vq"). */
static enum cb_status parse_short(struct cb_call *call, const char *argument, const char **next,
                                  struct cb_diag *diag) {
  for (; *argument; argument++) {
    const struct flag *flag = NULL;
    for (int i = 0; i < FLAGS && !flag; i++)
      if (flag_applies(&flag_table[i], call->verb->takes) && flag_table[i].letter == *argument)
        flag = &flag_table[i];
    if (!flag)
      return cb_fail(diag, CB_ERR_ARGUMENT, "unknown option '-%c'; see 'cbgen help %s'", *argument,
                     call->verb->name);
    if (!flag->value) {
      const enum cb_status s = set_flag(call, flag, NULL, diag);
      if (s) return s;
      continue;
    }
    if (argument[1]) return set_flag(call, flag, argument + 1, diag);
    if (!*next)
      return cb_fail(diag, CB_ERR_ARGUMENT, "'-%c' needs a value: '-%c %s'", *argument, *argument,
                     flag->value);
    const char *value = *next;
    *next = NULL;
    return set_flag(call, flag, value, diag);
  }
  return CB_OK;
}

int cb_call_has(const struct cb_call *call, const char *name) {
  for (int i = 0; i < FLAGS; i++)
    if (call->flags_given >> i & 1 && !strcmp(flag_table[i].name, name)) return 1;
  return 0;
}

enum cb_status cb_call_check(const struct cb_call *call, struct cb_diag *diag) {
  const struct cb_verb *verb = call->verb;
  if (call->options.tune == CB_TUNE_MEASURE && !(verb->takes & CB_TAKES_MEASURE))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'--tune=measure' means nothing to '%s': run, bench and generate measure",
                   verb->name);
  return verb->check ? verb->check(call, diag) : CB_OK;
}

enum cb_status cb_call_parse(struct cb_call *call, int count, char **arguments, struct cb_diag *diag) {
  int only_files = 0;
  for (int i = 0; i < count; i++) {
    const char *argument = arguments[i], *next = i + 1 < count ? arguments[i + 1] : NULL, *offered = next;
    enum cb_status s = CB_OK;
    if (!only_files && !strcmp(argument, "--")) {
      only_files = 1;
    } else if (!only_files && !strncmp(argument, "--", 2)) {
      s = parse_long(call, argument + 2, &next, diag);
    } else if (!only_files && argument[0] == '-' && argument[1]) {
      s = parse_short(call, argument + 1, &next, diag);
    } else if (call->verb->takes & CB_TAKES_CACHE && !call->action) {
      call->action = argument;
    } else if (call->verb->takes & CB_TAKES_NOTHING) {
      s = cb_fail(diag, CB_ERR_ARGUMENT, "'%s' takes no '%s'", call->verb->name, argument);
    } else if (call->verb->takes & CB_TAKES_TWO && call->file && !call->other) {
      call->other = argument;
    } else if (call->verb->takes & CB_TAKES_TWO && call->file) {
      s = cb_fail(diag, CB_ERR_ARGUMENT, "'%s' takes two: '%s' is one too many", call->verb->name, argument);
    } else if (call->file && call->action && call->more_count < CB_MAX_MORE) {
      call->more[call->more_count++] = argument; /* the action says whether it takes several */
    } else if (call->file && call->action) {
      s = cb_fail(diag, CB_ERR_ARGUMENT, "'cache %s' takes %d at once: '%s' is one too many", call->action,
                  CB_MAX_MORE + 1, argument);
    } else if (call->file) {
      s = cb_fail(diag, CB_ERR_ARGUMENT, "one file at a time: '%s' or '%s'", call->file, argument);
    } else {
      call->file = argument;
    }
    if (s) return s;
    if (offered && !next) i++;
  }
  return CB_OK;
}
