// SPDX-License-Identifier: Apache-2.0
/* An operator's text taken apart: see product.h. The marks that are looked for stand in templates/vectors.cu.in,
 * region.cu.in and kernel.cu.in. */
#include "codegen/program/product.h"

#include "codegen/constants.h"
#include "codegen/expand.h"
#include "codegen/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char REGION[] = "// ---- region ";

static enum cb_status fail_text(const char *what, struct cb_diag *diag) {
  return cb_fail(diag, CB_ERR_UNSUPPORTED, "the operator's text has no %s, so no program can be made of it", what);
}

static void add_range(struct cb_text *text, const char *from, const char *end) {
  cb_text_add_bytes(text, from, (size_t)(end - from));
}

/* ---- above the regions */

/* Behind the definition that begins at `at`: one line, or up to a brace at the beginning of a line. */
static const char *behind_definition(const char *at) {
  const char *line = at + strcspn(at, "\n");
  if (line > at && line[-1] == '}') return *line ? line + 1 : line;
  const char *end = strstr(at, "\n}\n");
  return end ? end + 3 : at + strlen(at);
}

/* Where the comment begins that stands above `at`. */
static const char *comment_above(const char *text, const char *at) {
  while (at > text) {
    const char *line = at - 1;
    while (line > text && line[-1] != '\n') line--;
    if (strncmp(line, "//", 2) != 0) return at;
    at = line;
  }
  return at;
}

/* All but `commit`, in whose place the program has its own. */
static void take_vectors(struct cb_product_text *product, const char *from, const char *end) {
  static const char commit[] = "CBGEN_DEVICE void commit(";
  struct cb_text whole = {0};
  add_range(&whole, from, end);
  const char *text = cb_text_string(&whole), *at = strstr(text, commit);
  if (at) {
    add_range(&product->vectors, text, comment_above(text, at));
    cb_text_add_string(&product->vectors, behind_definition(at));
  } else {
    cb_text_add_string(&product->vectors, text);
  }
  product->vectors.failed |= whole.failed;
  cb_text_release(&whole);
}

/* ---- kernels */

/* "const sell0::Arrays sell0_arrays" → its type and name. With heads the argument is made of the other product's. */
static void add_parameter(struct cb_product_text *product, int launch, int heads, struct cb_text *function,
                          const char *from, const char *end) {
  static const char plain[] = "const ";
  if (!strncmp(from, plain, sizeof plain - 1)) from += sizeof plain - 1;
  const char *blank = memchr(from, ' ', (size_t)(end - from));
  const int type = blank ? (int)(blank - from) : 0, name = blank ? (int)(end - blank - 1) : 0;
  if (!blank) return;
  cb_text_add(function, "const %.*s &%.*s, ", type, from, name, blank + 1);
  cb_text_add(&product->parameters, "const %.*s launch%d_%.*s, ", type, from, launch, name, blank + 1);
  if (heads) cb_text_add(&product->heads_arguments[launch], "heads::%.*s{launch%d_%.*s}, ", type, from, launch, name, blank + 1);
  else cb_text_add(&product->arguments[launch], "launch%d_%.*s, ", launch, name, blank + 1);
}

/* The arrays are the parameters before x. */
static int add_parameters(struct cb_product_text *product, int launch, int heads, struct cb_text *function,
                          const char *list) {
  const char *end = strstr(list, "const vector_t *x");
  if (!end) return 0;
  for (const char *next; list < end; list = next) {
    next = strstr(list, ", ");
    if (!next || next >= end) return 0;
    add_parameter(product, launch, heads, function, list, next);
    next += 2;
  }
  return 1;
}

/* Those of the text's lines that have none of the words. */
static void add_lines(struct cb_text *text, const char *from, const char *end, const char *const *words) {
  for (const char *next; from < end; from = next) {
    next = strchr(from, '\n') + 1;
    int is_kept = 1;
    for (int i = 0; words[i]; i++) is_kept &= !memmem(from, (size_t)(next - from), words[i], strlen(words[i]));
    if (is_kept) add_range(text, from, next);
  }
}

/* What kernels, or regions in them, tell the kernels before and behind. */
#define OF_OTHER_KERNELS "wait_for_previous()", "wait_behind(", "start_next()", "after_wait("

/* The lines of a kernel's body that compute, of a virtual thread block. */
static void add_body(struct cb_text *function, const char *from, const char *end) {
  static const char *const others[] = {OF_OTHER_KERNELS, "const Vectors vectors = ", NULL};
  struct cb_text body = {0};
  add_lines(&body, from, end, others);
  const char *at = cb_text_string(&body);
  for (const char *found; (found = strstr(at, "blockIdx.x")); at = found + strlen("blockIdx.x")) {
    add_range(function, at, found);
    cb_text_add_string(function, "thread_block");
  }
  cb_text_add_string(function, at);
  function->failed |= body.failed;
  cb_text_release(&body);
}

/* How many thread blocks a multiprocessor shall hold, as the kernel's bounds have it, whose name begins at `name`. */
static void note_bounds(struct cb_product_text *product, const char *kernels, const char *name) {
  static const char fit[] = "blocks_that_fit(";
  const char *line = name;
  while (line > kernels && line[-1] != '\n') line--;
  const char *at = memmem(line, (size_t)(name - line), fit, sizeof fit - 1);
  const int blocks = at ? (int)strtol(at + sizeof fit - 1, NULL, 10) : 0;
  if (blocks && (!product->blocks_per_sm || blocks < product->blocks_per_sm)) product->blocks_per_sm = blocks;
}

/* The kernel `name` of the text, or that with heads, as function product_LAUNCH. */
static enum cb_status take_kernel(struct cb_product_text *product, const char *kernels, const char *name, int launch,
                                  int heads, struct cb_diag *diag) {
  struct cb_text head = {0}, function = {0};
  cb_text_add(&head, " %s%s(", name, heads ? "_heads" : "");
  const char *list = head.failed ? NULL : strstr(kernels, cb_text_string(&head));
  const char *body = list ? strstr(list, ") {\n") : NULL, *end = body ? strstr(body, "\n}\n") : NULL;
  cb_text_add(&function, "// Launch %d of the product, of one of its thread blocks.\nCBGEN_DEVICE void product_%d(", launch,
              launch);
  if (list) note_bounds(product, kernels, list);
  const int good = end && add_parameters(product, launch, heads, &function, list + head.length);
  if (good) {
    cb_text_add_string(&function, "const Vectors &vectors, int thread_block) {\n");
    add_body(&function, body + strlen(") {\n"), end + 1);
    cb_text_add_string(&function, "}\n\n");
    cb_text_add_string(&product->functions, cb_text_string(&function));
  }
  product->functions.failed |= function.failed | head.failed;
  cb_text_release(&head);
  cb_text_release(&function);
  return good ? CB_OK : fail_text("kernel of that name", diag);
}

/* ---- what it is like */

/* One region of templates/dia.cu.in, or of blocks.cu.in, in which a thread has one row. */
static enum cb_own_rows own_rows(const char *regions) {
  static const char of_thread[] = "  const int row = 256 * thread_block + (int)threadIdx.x",
                    of_lane[] = "row = kBlockRows * local_row + own;\n";
  const char *region = strstr(regions, REGION);
  if (!region || strstr(region + 1, REGION)) return CB_ROWS_ANY;
  region += sizeof REGION - 1;
  if (!strncmp(region, "blocks", 6)) return strstr(region, of_lane) ? CB_ROWS_OF_LANES : CB_ROWS_ANY;
  const char *row = strncmp(region, "dia", 3) != 0 ? NULL : strstr(region, of_thread);
  return row && !strstr(row + sizeof of_thread, "thread_block") ? CB_ROWS_OF_THREADS : CB_ROWS_ANY;
}

static void look(struct cb_product_text *product) {
  static const char *const adding[] = {"commit_more", "commit_atomic"};
  const char *regions = cb_text_string(&product->regions), *vectors = cb_text_string(&product->vectors);
  product->commits_once = 1;
  for (int i = 0; i < 2; i++)
    if (cb_has_word(regions, adding[i]) || cb_has_word(cb_text_string(&product->functions), adding[i]))
      product->commits_once = 0;
  product->own_rows = own_rows(regions);
  product->is_scaled = strstr(vectors, "\n  sum_t alpha, beta;\n") != NULL;
  product->holds = strstr(vectors, "\nstruct Held {\n") != NULL;
  product->has_carry = strstr(vectors, "\n  sum_t *carry_sums;") != NULL;
  product->shares =
      strstr(regions, "__shared__") || strstr(regions, "DynamicShared") || strstr(regions, "__syncthreads");
}

/* `load_x` stands by itself where all entries of x are read by it. */
static void take_load_x(struct cb_product_text *product) {
  static const char head[] = "CBGEN_DEVICE sum_t load_x(";
  const char *text = cb_text_string(&product->vectors), *at = strstr(text, head);
  struct cb_text rest = {0};
  if (!at || strstr(cb_text_string(&product->regions), "vectors.x") ||
      strstr(cb_text_string(&product->functions), "vectors.x"))
    return;
  add_range(&product->load_x, comment_above(text, at), behind_definition(at));
  add_range(&rest, text, comment_above(text, at));
  cb_text_add_string(&rest, behind_definition(at));
  if (strstr(cb_text_string(&rest), "vectors.x")) {
    cb_text_release(&rest);
    cb_text_release(&product->load_x);
    return;
  }
  rest.failed |= product->vectors.failed;
  cb_text_release(&product->vectors);
  product->vectors = rest;
}

static int has_failed(const struct cb_product_text *product) {
  for (int i = 0; i < CB_PROGRAM_LAUNCHES; i++)
    if (product->arguments[i].failed || product->heads_arguments[i].failed) return 1;
  return product->vectors.failed || product->load_x.failed || product->regions.failed || product->functions.failed ||
         product->parameters.failed;
}

/* What is loaded before a wait is loaded as all else, by indices of 32 bits: there is nothing to wait for. */
static void load_in_time(struct cb_text *regions) {
  struct cb_text made = {0};
  const char *from = cb_text_string(regions);
  for (const char *at; (at = strstr(from, CB_EARLY_INDEX)); from = at + strlen(CB_EARLY_INDEX)) {
    add_range(&made, from, at);
    cb_text_add_string(&made, "using index_t = int" CB_ANY_INDEX);
  }
  cb_text_add_string(&made, from);
  made.failed |= regions->failed;
  cb_text_release(regions);
  *regions = made;
  cb_word_instead(regions, "load_early", "load");
  cb_word_instead(regions, "load_early_hinted", "load_hinted");
}

/* Regions, and kernels as functions, of the text, or of its namespace `heads`. */
static enum cb_status take_product(struct cb_product_text *product, const struct cb_program_request *request,
                                   const char *text, int heads, struct cb_diag *diag) {
  static const char *const others[] = {OF_OTHER_KERNELS, NULL};
  const char *regions = text ? strstr(text, REGION) : NULL;
  const char *kernels = regions ? strstr(regions, "// ---- kernels\n") : NULL;
  if (!kernels) return fail_text("regions and kernels", diag);
  add_lines(&product->regions, regions, kernels, others);
  enum cb_status s = CB_OK;
  for (int i = 0; i < request->launches_count && !s; i++)
    s = take_kernel(product, kernels, request->launches[i].kernel, i, heads, diag);
  cb_word_instead(&product->regions, "commit", "commit_step");
  cb_word_instead(&product->functions, "commit", "commit_step");
  load_in_time(&product->regions);
  return s;
}

/* ---- the same with heads */

/* Regions of the namespace have the arrays of those outside, which get names in `outside`, as a type of their own: what
 * is called with it is found in the namespace. */
static void share_arrays(struct cb_text *regions, struct cb_text *outside) {
  static const char space[] = "\nnamespace ", arrays[] = "struct Arrays {\n", end[] = "};\n";
  struct cb_text made = {0};
  const char *from = cb_text_string(regions), *behind;
  for (const char *at; (at = strstr(from, arrays)) && (behind = strstr(at, end)); from = behind + strlen(end)) {
    const char *name = NULL;
    for (const char *next = from; (next = strstr(next, space)) && next < at; next = name) name = next + strlen(space);
    if (!name) break;
    const int length = (int)strcspn(name, " ");
    cb_text_add(outside, "using %.*s_arrays_t = %.*s::Arrays;\n", length, name, length, name);
    add_range(&made, from, at);
    cb_text_add(&made, "struct Arrays : %.*s_arrays_t {};\n", length, name);
  }
  cb_text_add_string(&made, from);
  made.failed |= regions->failed;
  cb_text_release(regions);
  *regions = made;
}

static void add_namespace(struct cb_text *text, const char *name, const struct cb_text *body) {
  cb_text_add(text, "namespace %s {\n\n%s}  // namespace %s\n\n", name, cb_text_string(body), name);
  text->failed |= body->failed;
}

/* A factor of a size: a number, or a constant of the text; 1 if it is none. */
static int64_t factor_at(const char *text, const char *at) {
  char head[80];
  if (*at >= '0' && *at <= '9') return strtoll(at, NULL, 10);
  snprintf(head, sizeof head, "constexpr int %.*s = ", (int)strcspn(at, " *>"), at);
  const char *found = strstr(text, head);
  return found ? strtoll(found + strlen(head), NULL, 10) : 1;
}

/* Bytes of "__shared__ Shared<sum_t, 8 * kItems> sums;" and the like, were all of double precision. */
static int64_t shared_bytes(const char *text) {
  static const char shared[] = "__shared__ Shared<";
  int64_t all = 0;
  for (const char *at = text; (at = strstr(at, shared)); at += sizeof shared - 1) {
    int64_t bytes = sizeof(double);
    const char *end = at + strcspn(at, ">;"), *factor = at + strcspn(at, ",>;");
    for (; factor < end; factor += 1 + strcspn(factor + 1, "*>;"))
      bytes *= factor_at(text, factor + 1 + strspn(factor + 1, " "));
    all += bytes;
  }
  return all;
}

/* Both products have their own, beside which the program has little. */
static enum cb_status check_shared(const struct cb_product_text *product, struct cb_diag *diag) {
  enum { ROOM = 44 << 10 };
  const int64_t bytes = shared_bytes(cb_text_string(&product->regions));
  if (bytes <= ROOM) return CB_OK;
  return cb_fail(diag, CB_ERR_UNSUPPORTED,
                 "this product and that with heads have %lld bytes of shared memory in one kernel, and there are %d: "
                 "choose another recipe", (long long)bytes, ROOM);
}

/* Regions and functions of the namespace `heads`, behind the others. */
static enum cb_status take_heads(struct cb_product_text *product, const struct cb_program_request *request,
                                 const char *text, struct cb_diag *diag) {
  struct cb_product_text heads = {0};
  const char *space = strstr(text, "\nnamespace heads {\n");
  if (!space)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "method '%s' multiplies with heads of split values, and this product has none",
                   request->program->name);
  enum cb_status s = take_product(&heads, request, space, 1, diag);
  share_arrays(&heads.regions, &product->regions);
  cb_text_add_string(&product->regions, "\n");
  add_namespace(&product->regions, "heads", &heads.regions);
  add_namespace(&product->functions, "heads", &heads.functions);
  if (heads.blocks_per_sm && (!product->blocks_per_sm || heads.blocks_per_sm < product->blocks_per_sm))
    product->blocks_per_sm = heads.blocks_per_sm;
  for (int i = 0; i < request->launches_count; i++) {
    product->heads_arguments[i] = heads.heads_arguments[i];
    heads.heads_arguments[i] = (struct cb_text){0};
  }
  cb_product_text_release(&heads);
  return s ? s : check_shared(product, diag);
}

/* ---- the same that only notes what it reads */

static void replace_words(struct cb_text *text, const char *const words[][2], int count) {
  for (int i = 0; i < count; i++) cb_word_instead(text, words[i][0], words[i][1]);
}

/* What lies in shared memory is there at once: few blocks in flight will do, and registers are free for the rest. */
static void shorten_batches(struct cb_text *regions) {
  enum { BATCH = 2 };
  static const char blocks[] = "// ---- region blocks", batch[] = "\nconstexpr int kBatch = ";
  struct cb_text made = {0};
  const char *from = cb_text_string(regions);
  for (const char *at; (at = strstr(from, blocks)) && (at = strstr(at, batch));) {
    char *end;
    at += sizeof batch - 1;
    const long number = strtol(at, &end, 10);
    add_range(&made, from, at);
    cb_text_add(&made, "%ld", number < BATCH ? number : BATCH);
    from = end;
  }
  cb_text_add_string(&made, from);
  made.failed |= regions->failed;
  cb_text_release(regions);
  *regions = made;
}

void cb_product_watch(struct cb_product_text *product) {
  static const char *const watched[][2] = {{"load", "load_watched"},
                                           {"load_stream", "load_watched"},
                                           {"load_stream_vector", "load_watched_vector"},
                                           {"load_cached_vector", "load_watched_vector"},
                                           {"load_hinted", "load_watched"},
                                           {"load_hinted_vector", "load_watched_vector"},
                                           {"load_x", "leave_x"},
                                           {"is_finite", "leave_finite"}, /* else rows with absent entries are read again */
                                           {"commit_step", "leave_row"}},
                           *const near[][2] = {{"load", "load_near"},
                                               {"load_stream", "load_near"},
                                               {"load_stream_vector", "load_near_vector"},
                                               {"load_cached_vector", "load_near_vector"},
                                               {"load_hinted", "load_near"},
                                               {"load_hinted_vector", "load_near_vector"}};
  enum { WATCHED = sizeof watched / sizeof *watched, NEAR = sizeof near / sizeof *near };
  struct cb_text regions = {0}, functions = {0};
  shorten_batches(&product->regions);
  cb_text_add_string(&regions, cb_text_string(&product->regions));
  cb_text_add_string(&functions, cb_text_string(&product->functions));
  replace_words(&regions, watched, WATCHED);
  replace_words(&functions, watched, WATCHED);
  replace_words(&product->regions, near, NEAR);
  replace_words(&product->functions, near, NEAR);
  share_arrays(&regions, &product->regions);
  cb_text_add_string(&product->regions, "\n");
  add_namespace(&product->regions, "watched", &regions);
  add_namespace(&product->functions, "watched", &functions);
  cb_text_release(&regions);
  cb_text_release(&functions);
}

/* ---- the whole */

enum cb_status cb_product_take(struct cb_product_text *product, const struct cb_program_request *request,
                               struct cb_diag *diag) {
  const char *text = cb_source_behind_prelude(request->source);
  *product = (struct cb_product_text){0};
  const char *regions = text ? strstr(text, REGION) : NULL;
  if (!regions) return fail_text("regions", diag);
  take_vectors(product, text, regions);
  enum cb_status s = take_product(product, request, text, 0, diag);
  look(product);
  take_load_x(product);
  if (!s && cb_program_has_heads(request->program)) s = take_heads(product, request, text, diag);
  return has_failed(product) ? cb_fail_memory(diag, "a program's text", 0) : s; /* what lacks memory lacks its parts */
}

/* ---- functions that are templates */

/* Where the definition begins whose head has `at`: "CBGEN_DEVICE …", at the beginning of a line. */
static const char *definition_above(const char *text, const char *at) {
  static const char device[] = "CBGEN_DEVICE ";
  while (at > text) {
    const char *line = at;
    while (line > text && line[-1] != '\n') line--;
    if (!strncmp(line, device, sizeof device - 1)) return line;
    if (line == text || !strchr(" \t", *line)) return NULL;
    at = line - 1;
  }
  return NULL;
}

static int make_templates(struct cb_text *text) {
  static const char vectors[] = "const Vectors &";
  struct cb_text made = {0};
  const char *whole = cb_text_string(text), *from = whole, *head = NULL;
  for (const char *at; (at = strstr(from, vectors)); from = at + sizeof vectors - 1) {
    const char *definition = definition_above(whole, at);
    if (!definition) break;
    if (definition != head) { /* one of several parameters has the prefix already */
      add_range(&made, from, definition);
      cb_text_add_string(&made, "template <class V> ");
      from = definition;
    }
    head = definition;
    add_range(&made, from, at);
    cb_text_add_string(&made, "const V &");
  }
  const int all = !strstr(from, vectors);
  cb_text_add_string(&made, from);
  made.failed |= text->failed;
  cb_text_release(text);
  *text = made;
  return all;
}

enum cb_status cb_product_template(struct cb_product_text *product, struct cb_diag *diag) {
  if (make_templates(&product->regions) && make_templates(&product->functions)) return CB_OK;
  return fail_text("function heads that are known", diag);
}

void cb_product_text_release(struct cb_product_text *product) {
  cb_text_release(&product->vectors);
  cb_text_release(&product->load_x);
  cb_text_release(&product->regions);
  cb_text_release(&product->functions);
  cb_text_release(&product->parameters);
  for (int i = 0; i < CB_PROGRAM_LAUNCHES; i++) {
    cb_text_release(&product->arguments[i]);
    cb_text_release(&product->heads_arguments[i]);
  }
}
