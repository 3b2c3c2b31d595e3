// SPDX-License-Identifier: Apache-2.0
/* cbgen: which verb, its help, its exit code. `cbgen FILE …` is short for `cbgen generate FILE …`. */
#include "tool/tool.h"

#include "analysis/plan/recipe.h"
#include "analysis/target.h"
#include "base/numerics.h"
#include "frontend/generate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct cb_verb *const cb_verb_table[] = {
    &cb_verb_generate, &cb_verb_analyze, &cb_verb_verify, &cb_verb_trace, &cb_verb_diff,      &cb_verb_report,
    &cb_verb_run,      &cb_verb_bench,   &cb_verb_why,    &cb_verb_calibrate, &cb_verb_cache, &cb_verb_families,
    &cb_verb_solve,    &cb_verb_lp,      NULL};

static const struct cb_verb *find_verb(const char *name) {
  for (int i = 0; cb_verb_table[i]; i++)
    if (!strcmp(cb_verb_table[i]->name, name)) return cb_verb_table[i];
  return NULL;
}

static const char *nearest_verb(const char *word) {
  const char *names[16];
  int count = 0;
  for (; cb_verb_table[count] && count < 15; count++) names[count] = cb_verb_table[count]->name;
  names[count] = NULL;
  return cb_nearest(word, names);
}

static void overview(struct cb_text *text) {
  cb_text_add_string(text, "cbgen makes a CUDA kernel for one sparse matrix A, y = αAx + βy, with all it can know of A.\n\n"
                           "Usage: cbgen FILE -o kernel.cu [OPTION…]     the same as 'cbgen generate FILE …'\n"
                           "       cbgen VERB FILE [OPTION…]\n\n");
  for (int i = 0; cb_verb_table[i]; i++)
    cb_text_add(text, "  %-9s %s\n", cb_verb_table[i]->name, cb_verb_table[i]->summary);
  cb_text_add_string(text,
                     "\n  help VERB | options | recipes | architectures | shapes | exit-codes      --version\n\n"
                     "FILE is Matrix Market, SciPy .npz or an edge list, plain or packed (.gz .zst .xz .bz2 .tar.gz), '-'\n"
                     "or 'generate:SHAPE,…' ('cbgen help shapes'). Example: cbgen examples/bcsstk13.mtx.gz -o kernel.cu\n");
}

static void verb_help(struct cb_text *text, const struct cb_verb *verb) {
  cb_text_add(text, "Usage: cbgen %s %s\n\n%s\n", verb->name, verb->arguments, verb->details);
  cb_flags_help(text, verb->takes);
  cb_text_add(text, "\n%sExit codes: cbgen help exit-codes.\nExample: %s\n",
              verb->takes & CB_WITHOUT_MATRIX ? "" : "Options of the analysis: cbgen help options. ", verb->example);
}

static void recipes_help(struct cb_text *text) {
  const struct cb_recipe *recipe;
  for (int i = 0; (recipe = cb_recipe_at(i)); i++) cb_text_add(text, "  %-10s %s\n", recipe->name, recipe->summary);
}

static enum cb_status help_topic(const char *topic, struct cb_diag *diag) {
  struct cb_text text = {0};
  const struct cb_verb *verb = topic ? find_verb(topic) : NULL;
  enum cb_status s = CB_OK;
  if (!topic)
    overview(&text);
  else if (verb)
    verb_help(&text, verb);
  else if (!strcmp(topic, "options"))
    cb_options_help(&text);
  else if (!strcmp(topic, "recipes"))
    recipes_help(&text);
  else if (!strcmp(topic, "architectures"))
    cb_architectures_help(&text);
  else if (!strcmp(topic, "shapes"))
    cb_matrix_shapes(&text);
  else if (!strcmp(topic, "exit-codes"))
    cb_exit_help(&text);
  else
    s = cb_fail(diag, CB_ERR_ARGUMENT,
                "no help on '%s'; there is help on verbs, options, recipes, architectures, shapes and exit-codes",
                topic);
  if (!s) s = cb_print(&text, diag);
  cb_text_release(&text);
  return s;
}

static enum cb_status print_version(struct cb_diag *diag) {
  struct cb_text text = {0};
  cb_text_add_string(&text, "cbgen " CB_VERSION "\n");
  const enum cb_status s = cb_print(&text, diag);
  cb_text_release(&text);
  return s;
}

/* Checks first that the file exists: a wrong name is likelier than a missing option. */
static enum cb_status check_file(const struct cb_call *call, struct cb_diag *diag) {
  const char *file = call->file;
  if (call->verb->takes & (CB_TAKES_BENCH | CB_TAKES_LIST) && *file == '@') file++; /* a list of files */
  if (call->verb->takes & CB_TAKES_TRACE) return CB_OK;           /* it says more of what is no matrix */
  if (!strcmp(file, "-") || !strncmp(file, "generate:", 9) || !access(file, F_OK)) return CB_OK;
  return cb_fail(diag, CB_ERR_IO, "cannot open '%s': %s", file, strerror(errno));
}

static enum cb_status run_verb(const struct cb_verb *verb, int count, char **arguments, struct cb_diag *diag) {
  struct cb_call call = {.verb = verb, .selftest = 1, .seed = 1, .limit = -1};
  cb_options_default(&call.options);
  enum cb_status s = cb_call_parse(&call, count, arguments, diag);
  if (s) return s;
  if (call.help) return help_topic(verb->name, diag);
  if (!call.file && !(verb->takes & CB_WITHOUT_MATRIX))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'%s' needs a file; see 'cbgen help %s'", verb->name, verb->name);
  const struct cb_recipe *recipe;
  if (!(verb->takes & (CB_WITHOUT_MATRIX | CB_TAKES_TWO))) s = check_file(&call, diag);
  if (!s) s = cb_recipe_find(&recipe, call.options.recipe, diag); /* before a large file is read for nothing */
  if (!s) s = cb_options_check(&call.options, diag);
  if (!s) s = cb_call_check(&call, diag);
  if (s) return s;
  cb_outputs_watch_signals();
  cb_progress_start(&call);
  s = verb->run(&call, diag);
  cb_progress_stop();
  return s;
}

static enum cb_status dispatch(int argc, char **argv, struct cb_diag *diag) {
  const char *first = argc > 1 ? argv[1] : NULL;
  if (!first) return cb_fail(diag, CB_ERR_ARGUMENT, "no file given; see 'cbgen --help'");
  const int is_version = !strcmp(first, "--version"), is_help = !strcmp(first, "help");
  if ((is_version && argc > 2) || (is_help && argc > 3))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'%s' takes no '%s'", first, argv[is_help ? 3 : 2]);
  if (is_version) return print_version(diag);
  if (is_help) return help_topic(argc > 2 ? argv[2] : NULL, diag);
  if (argc == 2 && (!strcmp(first, "--help") || !strcmp(first, "-h"))) return help_topic(NULL, diag);
  const struct cb_verb *verb = find_verb(first);
  if (!verb && *first != '-' && !strpbrk(first, "./:") && access(first, F_OK)) {
    const char *meant = nearest_verb(first);
    return meant ? cb_fail(diag, CB_ERR_ARGUMENT, "'%s' is neither a verb nor a file; did you mean '%s'", first, meant)
                 : cb_fail(diag, CB_ERR_ARGUMENT, "'%s' is neither a verb nor a file; see 'cbgen --help'", first);
  }
  return verb ? run_verb(verb, argc - 2, argv + 2, diag) : run_verb(&cb_verb_generate, argc - 1, argv + 1, diag);
}

int main(int argc, char **argv) {
  CB_STANDARD_NUMERICS; /* OpenMP has no threads yet: they start with what this one has */
  struct cb_diag diag = {0};
  const enum cb_status s = dispatch(argc, argv, &diag);
  if (s) cb_say_message(&diag);
  return cb_exit_code(s);
}
