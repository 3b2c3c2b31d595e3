// SPDX-License-Identifier: Apache-2.0
/* The reports of `cbgen why`: text, then JSON. */
#include "tool/why.h"

#include "base/json.h"

#include <stdio.h>
#include <string.h>

static double us(int64_t ns) {
  return 1e-3 * (double)ns;
}

static int has_row(const struct cb_why *why) {
  return cb_call_has(why->call, "row");
}

static const struct cb_thread_block *block_of(const struct cb_why *why, const struct cb_thread_block_facts *facts) {
  return &why->blocks.blocks[facts->number];
}

/* Its number within its launch. */
static int64_t number_of(const struct cb_why *why, const struct cb_thread_block_facts *facts, int *launch) {
  *launch = cb_thread_blocks_launch(&why->blocks, facts->number);
  return facts->number - why->blocks.first[*launch];
}

static int64_t blocks_in(const struct cb_why *why, int launch) {
  return why->blocks.first[launch + 1] - why->blocks.first[launch];
}

/* ---- text: the head */

static void add_gpu(struct cb_text *text, const struct cb_why *why) {
  const struct cb_clocked *clocked = &why->clocked;
  if (!clocked->blocks) {
    cb_text_add(text, "GPU      none: all times are predicted, for %s (%s)\n         %s\n", why->job.target.arch,
                why->job.target.model, why->without);
    return;
  }
  cb_text_add(text, "GPU      %s (%s): median of %d run%s; a product takes %.2f us, with clocks %.2f us (%+.0f %%)\n",
              why->job.target.model, why->job.target.arch, clocked->runs, clocked->runs > 1 ? "s" : "",
              clocked->plain_us, clocked->clocked_us,
              clocked->plain_us > 0 ? 100 * (clocked->clocked_us / clocked->plain_us - 1) : 0);
  if (clocked->plain_registers != clocked->clocked_registers)
    cb_text_add(text, "         %d registers, with clocks %d\n", clocked->plain_registers, clocked->clocked_registers);
}

static void add_kernel(struct cb_text *text, const struct cb_why *why) {
  const struct cb_cost *cost = &why->job.plan->cost;
  cb_text_add(text,
              "kernel   %.2f us predicted, bound by %s: stream %.2f, gather %.2f, work %.2f, chain %.2f, tail %.2f\n",
              us(cost->ns), cb_term_names[cb_cost_binding(cost)], us(cost->stream_ns), us(cost->gather_ns),
              us(cost->work_ns), us(cost->chain_ns), us(cost->tail_ns));
}

/* How many there are and how they fill the GPU. */
static void add_launch(struct cb_text *text, const struct cb_why *why, int l) {
  const int64_t count = blocks_in(why, l);
  const struct cb_launch_time *time = why->clocked.blocks ? &why->clocked.launches[l] : NULL;
  const int64_t at_once = time && time->at_once ? time->at_once : why->blocks.at_once[l];
  if (!count) return;
  cb_text_add(text, "launch %-2d%lld thread block%s, %s%lld at a time: %.1f waves", l + 1, (long long)count,
              count > 1 ? "s" : "", time ? "" : "at most ", (long long)at_once, (double)count / (double)at_once);
  if (time)
    cb_text_add(text, "; %.2f us, of which %.2f us (%.0f %%) with at most half as many", time->us, time->tail_us,
                time->us > 0 ? 100 * time->tail_us / time->us : 0);
  cb_text_add_string(text, "\n");
}

static void add_head(struct cb_text *text, const struct cb_why *why) {
  const struct cb_csr *csr = &why->job.csr;
  cb_text_add(text, "matrix   %s: %lld x %lld, %lld nonzeros, as %s\nplan     %s\n", why->job.name,
              (long long)csr->rows, (long long)csr->cols, (long long)csr->nnz, cb_plan_types_name(why->job.plan),
              why->job.plan->line);
  add_gpu(text, why);
  add_kernel(text, why);
  for (int l = 0; l < why->blocks.launches_count; l++) add_launch(text, why, l);
  if (!why->blocks.is_known)
    cb_text_add(text, "         layout %s does not tell which thread block has which nonzeros\n", why->blocks.without);
}

/* ---- text: thread blocks */

static void add_cell(struct cb_text *text, int width, int is_known, int64_t number) {
  if (is_known)
    cb_text_add(text, "%*lld", width, (long long)number);
  else
    cb_text_add(text, "%*s", width, "-");
}

static void add_rows(struct cb_text *text, const struct cb_thread_block_facts *facts) {
  char rows[64] = "-", longest[64] = "-";
  if (facts->rows == 1)
    snprintf(rows, sizeof rows, "%lld", (long long)facts->first_row);
  else if (facts->rows)
    snprintf(rows, sizeof rows, "%lld to %lld", (long long)facts->first_row, (long long)facts->last_row);
  if (facts->rows)
    snprintf(longest, sizeof longest, "%lld (%lld)", (long long)facts->longest_row,
             (long long)facts->longest_row_nonzeros);
  cb_text_add(text, "  %17s  %16s", rows, longest);
}

static void add_times(struct cb_text *text, const struct cb_why *why, const struct cb_thread_block_facts *facts) {
  if (why->clocked.blocks)
    cb_text_add(text, "%9.2f%9.2f", why->clocked.blocks[facts->number].start_us, why->clocked.blocks[facts->number].us);
  if (!why->blocks.is_known) {
    cb_text_add(text, "%11s  %-6s", "-", "-");
    return;
  }
  const struct cb_cost *cost = &block_of(why, facts)->cost;
  cb_text_add(text, "%11.2f  %-6s", us(cost->ns), cost->ns ? cb_term_names[cb_cost_binding(cost)] : "-");
}

static void add_block(struct cb_text *text, const struct cb_why *why, const struct cb_thread_block_facts *facts,
                      const char *remark) {
  const struct cb_thread_block *block = block_of(why, facts);
  const int known = why->blocks.is_known;
  int launch;
  const int64_t number = number_of(why, facts, &launch);
  cb_text_add(text, "%6d%8lld", launch + 1, (long long)number);
  add_times(text, why, facts);
  add_cell(text, 10, known, block->nonzeros);
  add_rows(text, facts);
  add_cell(text, 9, known, facts->sectors);
  add_cell(text, 7, known && block->rounds, block->rounds);
  add_cell(text, 11, known, facts->bytes);
  cb_text_add(text, "%s\n", remark);
}

static void add_table(struct cb_text *text, const struct cb_why *why) {
  cb_text_add(text, "\n%s\nlaunch   block%s  predicted  bound   nonzeros  %17s  %16s  sectors  loads      bytes\n",
              has_row(why) ? "its thread blocks, times in us" : "the slowest thread blocks, times in us",
              why->clocked.blocks ? "  started measured" : "", "rows", "longest (here)");
  for (int i = 0; i < why->chosen; i++) add_block(text, why, &why->facts[why->order[i]], "");
  if (why->median >= 0) add_block(text, why, &why->facts[why->median], "  median");
}

/* ---- text: a row */

static void add_row(struct cb_text *text, const struct cb_why *why) {
  const int64_t row = why->call->row;
  cb_text_add(text, "row      %lld: %lld nonzeros, in %lld thread block%s%s\n", (long long)row,
              (long long)cb_csr_row_length(&why->job.csr, row), (long long)why->row_blocks,
              why->row_blocks == 1 ? "" : "s", why->row_blocks > why->chosen ? ", of which these are some" : "");
}

static double ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

/* The row's slowest thread block beside the median one. */
static void add_comparison(struct cb_text *text, const struct cb_why *why) {
  if (!has_row(why) || !why->chosen || why->median < 0) return;
  const struct cb_thread_block_facts *own = &why->facts[why->order[0]], *median = &why->facts[why->median];
  const double times = ratio(cb_why_us(why, own->number), cb_why_us(why, median->number));
  cb_text_add(text,
              "\n%s takes %.1f times as long as the median thread block, with %.1f times its nonzeros and %.1f times "
              "its bytes\n",
              why->chosen > 1 ? "the slowest of them" : "it", times,
              ratio((double)block_of(why, own)->nonzeros, (double)block_of(why, median)->nonzeros),
              ratio((double)own->bytes, (double)median->bytes));
}

/* ---- text: options */

static void name_option(char *name, size_t size, const struct cb_why_option *option) {
  snprintf(name, size, "%s%s%s--%s=%s", option->recipe ? "--recipe=" : "", option->recipe ? option->recipe : "",
           option->recipe ? " " : "", option->advice->option, option->advice->value);
}

static void add_option(struct cb_text *text, const struct cb_why_option *option) {
  char name[96];
  name_option(name, sizeof name, option);
  cb_text_add(text, "%8.2f us  %s\n             %s of %s: %s\n", us(option->ns), name,
              cb_term_names[option->advice->term], option->region, option->advice->why);
}

/* Those that are predicted to be faster; of the others the names. */
static void add_options(struct cb_text *text, const struct cb_why *why) {
  const int64_t own = why->job.plan->cost.ns;
  int faster = 0;
  while (faster < why->options_count && why->options[faster].ns < own) faster++;
  cb_text_add(text, "\noptions for what binds, predicted instead of %.2f us%s\n", us(own),
              faster ? "" : ": none is faster");
  for (int o = 0; o < faster; o++) add_option(text, &why->options[o]);
  for (int o = faster; o < why->options_count; o++) {
    char name[96];
    name_option(name, sizeof name, &why->options[o]);
    cb_text_add(text, "%s%s", o > faster ? ", " : "  not faster: ", name);
  }
  if (faster < why->options_count) cb_text_add_string(text, "\n");
}

void cb_why_text(struct cb_text *text, const struct cb_why *why) {
  add_head(text, why);
  if (has_row(why)) add_row(text, why);
  if (why->chosen) add_table(text, why);
  add_comparison(text, why);
  add_options(text, why);
}

/* ---- JSON */

static json_t *cost_json(const struct cb_cost *cost, int *failed) {
  const struct cb_json object = cb_json_object(failed);
  const int64_t parts[CB_TERMS] = {cost->stream_ns, cost->gather_ns, cost->work_ns, cost->chain_ns, cost->tail_ns};
  cb_json_set_integer(object, "ns", cost->ns);
  cb_json_set_text(object, "bound", cb_term_names[cb_cost_binding(cost)]);
  for (int t = 0; t < CB_TERMS; t++) {
    char name[16];
    snprintf(name, sizeof name, "%s_ns", cb_term_names[t]);
    cb_json_set_integer(object, name, parts[t]);
  }
  return object.json;
}

static json_t *row_json(int64_t row, int64_t nonzeros, int *failed) {
  const struct cb_json object = cb_json_object(failed);
  cb_json_set_integer(object, "row", row);
  cb_json_set_integer(object, "nonzeros", nonzeros);
  return object.json;
}

/* What is only known where the layout tells. */
static void set_facts(struct cb_json object, const struct cb_why *why, const struct cb_thread_block_facts *facts) {
  const struct cb_thread_block *block = block_of(why, facts);
  cb_json_set(object, "predicted", cost_json(&block->cost, object.failed));
  cb_json_set_integer(object, "nonzeros", block->nonzeros);
  cb_json_set_integer(object, "rows", facts->rows);
  if (facts->region >= 0) cb_json_set_text(object, "region", why->job.plan->regions[facts->region].name);
  if (facts->rows) {
    const json_int_t first = facts->first_row, last = facts->last_row;
    cb_json_set(object, "first_last_row", json_pack("[II]", first, last));
    cb_json_set(object, "longest", row_json(facts->longest_row, facts->longest_row_nonzeros, object.failed));
  }
  cb_json_set_integer(object, "sectors", facts->sectors);
  cb_json_set_integer(object, "dependent_loads", block->rounds);
  cb_json_set_integer(object, "bytes", facts->bytes);
  if (has_row(why)) cb_json_set_integer(object, "row_nonzeros", facts->row_nonzeros);
}

static json_t *block_json(const struct cb_why *why, const struct cb_thread_block_facts *facts, int *failed) {
  const struct cb_json object = cb_json_object(failed);
  int launch;
  const int64_t number = number_of(why, facts, &launch);
  cb_json_set_integer(object, "launch", launch + 1);
  cb_json_set_integer(object, "block", number);
  if (why->clocked.blocks) {
    cb_json_set_real(object, "started_us", why->clocked.blocks[facts->number].start_us);
    cb_json_set_real(object, "measured_us", why->clocked.blocks[facts->number].us);
  }
  if (why->blocks.is_known) set_facts(object, why, facts);
  return object.json;
}

static json_t *launch_json(const struct cb_why *why, int l, int *failed) {
  const struct cb_json object = cb_json_object(failed);
  cb_json_set_integer(object, "launch", l + 1);
  cb_json_set_integer(object, "blocks", blocks_in(why, l));
  cb_json_set_integer(object, "at_once_predicted", why->blocks.at_once[l]);
  if (why->clocked.blocks) {
    cb_json_set_integer(object, "at_once", why->clocked.launches[l].at_once);
    cb_json_set_real(object, "us", why->clocked.launches[l].us);
    cb_json_set_real(object, "tail_us", why->clocked.launches[l].tail_us);
  }
  return object.json;
}

static json_t *measured_json(const struct cb_why *why, int *failed) {
  const struct cb_clocked *clocked = &why->clocked;
  if (!clocked->blocks) return json_null();
  const struct cb_json object = cb_json_object(failed);
  cb_json_set_integer(object, "runs", clocked->runs);
  cb_json_set_real(object, "product_us", clocked->plain_us);
  cb_json_set_real(object, "product_with_clocks_us", clocked->clocked_us);
  cb_json_set_real(object, "cycle_ns", clocked->cycle_ns);
  cb_json_set_integer(object, "registers", clocked->plain_registers);
  cb_json_set_integer(object, "registers_with_clocks", clocked->clocked_registers);
  return object.json;
}

static json_t *option_json(const struct cb_why_option *option, int *failed) {
  const struct cb_json object = cb_json_object(failed);
  if (option->recipe) cb_json_set_text(object, "recipe", option->recipe);
  cb_json_set_text(object, "option", option->advice->option);
  cb_json_set_text(object, "value", option->advice->value);
  cb_json_set_text(object, "region", option->region);
  cb_json_set_text(object, "bound", cb_term_names[option->advice->term]);
  cb_json_set_integer(object, "predicted_ns", option->ns);
  cb_json_set_text(object, "why", option->advice->why);
  return object.json;
}

static void set_head(struct cb_json root, const struct cb_why *why) {
  const struct cb_json target = cb_json_object(root.failed);
  cb_json_set_text(target, "arch", why->job.target.arch);
  cb_json_set_text(target, "model", why->job.target.model);
  cb_json_set_text(root, "file", why->call->file);
  cb_json_set_text(root, "plan", why->job.plan->line);
  cb_json_set(root, "target", target.json);
  cb_json_set(root, "measured", measured_json(why, root.failed));
  if (!why->clocked.blocks) cb_json_set_text(root, "not_measured", why->without);
  if (!why->blocks.is_known) cb_json_set_text(root, "not_told_by", why->blocks.without);
  cb_json_set(root, "predicted", cost_json(&why->job.plan->cost, root.failed));
}

enum cb_status cb_why_json(struct cb_text *text, const struct cb_why *why, struct cb_diag *diag) {
  int failed = 0;
  const struct cb_json root = cb_json_object(&failed), launches = cb_json_array(&failed);
  const struct cb_json blocks = cb_json_array(&failed), options = cb_json_array(&failed);
  set_head(root, why);
  for (int l = 0; l < why->blocks.launches_count; l++)
    if (blocks_in(why, l)) cb_json_append(launches, launch_json(why, l, &failed));
  for (int i = 0; i < why->chosen; i++) cb_json_append(blocks, block_json(why, &why->facts[why->order[i]], &failed));
  for (int o = 0; o < why->options_count; o++) cb_json_append(options, option_json(&why->options[o], &failed));
  cb_json_set(root, "launches", launches.json);
  if (has_row(why)) {
    const int64_t row = why->call->row;
    cb_json_set(root, "row", row_json(row, cb_csr_row_length(&why->job.csr, row), &failed));
    cb_json_set_integer(root, "row_blocks", why->row_blocks);
  }
  cb_json_set(root, "blocks", blocks.json);
  cb_json_set(root, "median", why->median >= 0 ? block_json(why, &why->facts[why->median], &failed) : json_null());
  cb_json_set(root, "options", options.json);
  const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(6);
  const enum cb_status s = cb_json_write(text, root, flags, "thread blocks as JSON", diag);
  cb_text_add_string(text, "\n");
  return s;
}
