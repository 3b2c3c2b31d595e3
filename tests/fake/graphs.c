// SPDX-License-Identifier: Apache-2.0
/* Captures of streams, and the graphs that they become: see state.h. Work is recorded in the order of the
 * calls, which respects every dependency, so a graph is a list.
 */
#include "tests/fake/state.h"

/* ---- captures */

enum mode { GLOBAL, THREAD_LOCAL, RELAXED };
enum status { NONE, ACTIVE, INVALIDATED };

struct capture {
  struct thing *origin;
  enum mode mode;
  const void *thread; /* the address of its own_mode */
  int invalidated;
  unsigned long long id;
  long position;
  struct thing *graph; /* what is recorded */
  int is_given;        /* the graph is the caller's */
  struct capture *next;
};
static struct capture *captures;
static _Thread_local enum mode own_mode = GLOBAL;

unsigned spoil(struct capture *capture, unsigned result) {
  capture->invalidated = 1;
  return result;
}

int forbids_unsafe(void) {
  int forbidden = 0;
  for (struct capture *c = captures; c && own_mode != RELAXED; c = c->next) {
    const int own = c->thread == &own_mode;
    if (own ? c->mode == RELAXED : own_mode == THREAD_LOCAL || c->mode != GLOBAL) continue;
    c->invalidated = 1;
    forbidden = 1;
  }
  return forbidden;
}

/* The legacy stream waits for every blocking stream, so it cannot be used while one of them is captured. */
static struct capture *blocking_capture(void) {
  for (const struct thing *thing = first_thing(); thing; thing = thing->next)
    if (thing->kind == STREAM && thing->capture && !(thing->flags & 1) && thing->device == current_device())
      return thing->capture;
  return NULL;
}

unsigned check_legacy(void) {
  struct capture *capture = blocking_capture();
  return capture ? spoil(capture, CAPTURE_IMPLICIT) : SUCCESS;
}

static void end_capture(struct capture *capture) {
  struct capture **at = &captures;
  while (*at != capture) at = &(*at)->next;
  *at = capture->next;
  for (struct thing *thing = first_thing(); thing; thing = thing->next)
    if (thing->capture == capture) thing->capture = NULL;
  free(capture);
}

void forget_captures(void) {
  while (captures) end_capture(captures);
}

unsigned record(struct thing *stream, const struct work *work) {
  struct capture *capture = stream->capture;
  if (capture->invalidated) return CAPTURE_INVALIDATED;
  if (work->kind == LAUNCH && !work->kernel->kernel)
    return misuse(spoil(capture, NOT_SUPPORTED), "a kernel for the hook alone cannot be captured");
  append_work(capture->graph, work);
  stream->position = ++capture->position;
  return SUCCESS;
}

EXPORT unsigned cuThreadExchangeStreamCaptureMode(unsigned *mode) {
  ENTER;
  const enum mode before = own_mode;
  if (*mode > RELAXED) return misuse(INVALID_VALUE, "no mode of capturing");
  own_mode = (enum mode) * mode;
  *mode = (unsigned)before;
  return SUCCESS;
}

/* `graph` NULL: a new one. */
static unsigned begin_capture(void *stream, unsigned mode, struct thing *graph) {
  static unsigned long long captures_begun;
  struct thing *thing = find(stream, STREAM);
  if (check_stream(stream)) return INVALID_HANDLE;
  if (!thing) return CAPTURE_UNSUPPORTED; /* the legacy stream */
  if (thing->capture || mode > RELAXED) return ILLEGAL_STATE;
  struct capture *capture = calloc(1, sizeof *capture);
  if (!capture) abort();
  *capture =
      (struct capture){.origin = thing, .mode = (enum mode)mode, .thread = &own_mode, .next = captures};
  capture->id = ++captures_begun;
  capture->graph = graph ? graph : create(GRAPH, thing->device);
  capture->is_given = graph != NULL;
  captures = thing->capture = capture;
  thing->position = thing->joined = 0;
  return SUCCESS;
}

EXPORT unsigned cuStreamBeginCapture_v2(void *stream, unsigned mode) {
  ENTER_CURRENT;
  return begin_capture(stream, mode, NULL);
}

EXPORT unsigned cuStreamBeginCaptureToGraph(void *stream, void *graph, const void *dependencies, const void *edges,
                                            size_t count, unsigned mode) {
  ENTER_CURRENT;
  struct thing *thing = find(graph, GRAPH);
  if (!thing || thing->first || dependencies || edges || count)
    return misuse(INVALID_VALUE, "a capture into a graph that is none, or not empty");
  return begin_capture(stream, mode, thing);
}

static int is_joined(const struct capture *capture) {
  for (const struct thing *thing = first_thing(); thing; thing = thing->next)
    if (thing->kind == STREAM && thing->capture == capture && thing != capture->origin &&
        thing->joined < thing->position)
      return 0;
  return 1;
}

/* One that is made to fail ends the capture all the same. */
EXPORT unsigned cuStreamEndCapture(void *stream, void **graph) {
  LOCK;
  const unsigned failed = enter_current(__func__);
  struct thing *thing = find(stream, STREAM);
  struct capture *capture = thing ? thing->capture : NULL;
  *graph = NULL;
  if (!capture || capture->origin != thing) return ILLEGAL_STATE;
  if (capture->mode != RELAXED && capture->thread != &own_mode) return spoil(capture, CAPTURE_WRONG_THREAD);
  const unsigned result = failed                 ? failed
                          : capture->invalidated ? CAPTURE_INVALIDATED
                          : is_joined(capture) ? SUCCESS
                                               : CAPTURE_UNJOINED;
  if (result && !capture->is_given)
    destroy(capture->graph);
  else if (!result)
    *graph = capture->graph;
  end_capture(capture);
  return result;
}

/* Asking about the legacy stream fails too, but spoils nothing. */
static unsigned status_of(void *stream, unsigned *status, unsigned long long *id) {
  const struct thing *thing = find(stream, STREAM);
  const struct capture *capture = thing ? thing->capture : NULL;
  const unsigned result = check_stream(stream);
  if (result) return result;
  if (is_legacy(stream) && blocking_capture()) return CAPTURE_IMPLICIT;
  *status = !capture ? NONE : capture->invalidated ? INVALIDATED : ACTIVE;
  if (id && capture) *id = capture->id;
  return SUCCESS;
}

EXPORT unsigned cuStreamIsCapturing(void *stream, unsigned *status) {
  ENTER_CURRENT;
  return status_of(stream, status, NULL);
}

EXPORT unsigned cuStreamGetCaptureInfo_v2(void *stream, unsigned *status, unsigned long long *id,
                                          void **graph, const void **dependencies, size_t *count) {
  ENTER_CURRENT;
  if (graph || dependencies || count) return misuse(NOT_SUPPORTED, "the graph under capture is asked for");
  return status_of(stream, status, id);
}

EXPORT unsigned cuStreamGetCaptureInfo_v3(void *stream, unsigned *status, unsigned long long *id,
                                          void **graph, const void **dependencies, const void **edges,
                                          size_t *count) {
  static const void *const none[1];
  ENTER_CURRENT;
  const struct thing *thing = find(stream, STREAM);
  const unsigned result = status_of(stream, status, id);
  if (result || !thing || !thing->capture) return result;
  if (thing->capture->invalidated) return CAPTURE_INVALIDATED;
  if (graph) *graph = thing->capture->graph;
  if (dependencies) *dependencies = none; /* a list's order needs none */
  if (edges) *edges = NULL;
  if (count) *count = 0;
  return SUCCESS;
}

EXPORT unsigned cuStreamUpdateCaptureDependencies_v2(void *stream, void **nodes, const void *edges, size_t count,
                                                     unsigned flags) {
  ENTER_CURRENT;
  const struct thing *thing = find(stream, STREAM);
  if (!thing || !thing->capture || !nodes || edges || count != 1 || flags != 1)
    return misuse(INVALID_VALUE, "dependencies of a stream that captures nothing");
  for (const struct work *work = thing->capture->graph->first; work; work = work->next)
    if (work == *nodes) return work->next ? misuse(INVALID_VALUE, "a dependency that is not the last node") : SUCCESS;
  return misuse(INVALID_VALUE, "a dependency that is no node of the graph");
}

/* ---- loops: conditional nodes that repeat a graph while their condition is not 0 */

struct condition {
  unsigned value, start;
  int used; /* by a node */
};
static struct condition *conditions;
static unsigned long long conditions_count;

static struct condition *condition_of(unsigned long long number) {
  return number && number <= conditions_count ? &conditions[number - 1] : NULL;
}

EXPORT unsigned cuGraphConditionalHandleCreate(unsigned long long *handle, void *graph, void *context, unsigned value,
                                               unsigned flags) {
  ENTER_CURRENT;
  const struct thing *thing = find(graph, GRAPH);
  if (!thing || flags != 1 || context != &contexts[thing->device])
    return misuse(INVALID_VALUE, "a condition of a graph that is none, or of another context");
  conditions = realloc(conditions, (size_t)(conditions_count + 1) * sizeof *conditions);
  if (!conditions) abort();
  conditions[conditions_count++] = (struct condition){value, value, 0};
  *handle = conditions_count;
  return SUCCESS;
}

void set_condition(unsigned long long condition, unsigned value) {
  if (condition_of(condition)) condition_of(condition)->value = value;
  else misuse(INVALID_VALUE, "a kernel sets a condition that is none");
}

/* In no account: it goes with its node. */
static struct thing *create_body(int device) {
  struct thing *body = create(GRAPH, device);
  body->app = 1;
  state.graphs--;
  return body;
}

struct thing *copy_body(const struct thing *body) {
  struct thing *copy = create_body(body->device);
  for (const struct work *work = body->first; work; work = work->next) append_work(copy, work);
  return copy;
}

unsigned perform_loop(const struct work *work) {
  enum { MANY = 20000 };
  struct condition *condition = condition_of(work->condition);
  long turns = 0;
  unsigned result = SUCCESS;
  for (; condition_of(work->condition)->value && !result && !contexts[work->device].failure; turns++) {
    if (turns == MANY) return misuse(INVALID_VALUE, "a loop that does not end");
    state.turns++;
    for (const struct work *each = work->body->first; each && !result; each = each->next) {
      result = check_work(each);
      if (!result) result = perform(each);
    }
  }
  condition = condition_of(work->condition);
  condition->value = condition->start; /* for the graph's next launch */
  return result;
}

/* CUgraphNodeParams of a conditional node. */
struct node {
  int type, reserved[3];
  union {
    long long bytes[29];
    struct {
      unsigned long long handle;
      unsigned type, size;
      void **graphs;
      void *context;
    } conditional;
  } value;
  long long reserved_too;
};

EXPORT unsigned cuGraphAddNode_v2(void **node, void *graph, const void *dependencies, const void *edges, size_t count,
                                  struct node *parameters) {
  enum { CONDITIONAL = 13, WHILE = 1 };
  ENTER_CURRENT;
  struct thing *thing = find(graph, GRAPH);
  const unsigned long long handle = parameters->value.conditional.handle;
  (void)dependencies;
  if (!thing || count || edges || parameters->type != CONDITIONAL || parameters->value.conditional.type != WHILE ||
      parameters->value.conditional.size != 1 || !condition_of(handle) || condition_of(handle)->used++ ||
      parameters->value.conditional.context != &contexts[thing->device])
    return misuse(INVALID_VALUE, "a node that is no loop, or a condition that another one has");
  struct thing *empty = create_body(thing->device);
  const struct work loop = {.kind = LOOP, .device = thing->device, .body = empty, .condition = handle};
  struct work *made = append_work(thing, &loop);
  destroy(empty);
  /* The list lives as long as the node, as the driver's does. */
  made->owned = malloc(sizeof(void *));
  if (!made->owned) abort();
  *(void **)made->owned = made->body;
  parameters->value.conditional.graphs = made->owned;
  *node = made;
  return SUCCESS;
}

/* ---- graphs */

EXPORT unsigned cuGraphCreate(void **graph, unsigned flags) {
  ENTER_CURRENT;
  if (flags) return misuse(INVALID_VALUE, "flags of a graph");
  *graph = create(GRAPH, current_device());
  return SUCCESS;
}

EXPORT unsigned cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags) {
  ENTER_CURRENT;
  const struct thing *thing = find(graph, GRAPH);
  if (!thing || flags) return misuse(INVALID_VALUE, "a graph that is none, or flags");
  struct thing *made = create(EXEC, thing->device);
  for (const struct work *work = thing->first; work; work = work->next) append_work(made, work);
  *exec = made;
  return SUCCESS;
}

EXPORT unsigned cuGraphGetNodes(void *graph, void **nodes, size_t *count) {
  ENTER_CURRENT;
  const struct thing *thing = find(graph, GRAPH);
  if (!thing || nodes) return misuse(INVALID_VALUE, "a graph that is none, or a list for its nodes");
  *count = 0;
  for (const struct work *work = thing->first; work; work = work->next) ++*count;
  return SUCCESS;
}

EXPORT unsigned cuGraphLaunch(void *exec, void *stream) {
  ENTER_CURRENT;
  const struct thing *thing = find(exec, EXEC), *on = find(stream, STREAM);
  if (!thing) return misuse(INVALID_VALUE, "a graph launched that is none");
  if (thing->device != current_device()) return misuse(INVALID_VALUE, "a graph launched in another context");
  unsigned result = check_stream(stream);
  if (!result && on && on->capture) result = misuse(NOT_SUPPORTED, "a graph launched into a capture");
  for (const struct work *work = thing->first; work && !result; work = work->next)
    result = submit(work, stream);
  if (!result) state.graph_launches++;
  return result;
}

EXPORT unsigned cuGraphDestroy(void *graph) {
  LOCK;
  return destroy_handle(graph, GRAPH, enter(__func__));
}

EXPORT unsigned cuGraphExecDestroy(void *exec) {
  LOCK;
  return destroy_handle(exec, EXEC, enter(__func__));
}

unsigned wait_captured(struct thing *stream, const struct thing *event) {
  struct capture *capture = event->capture;
  if (!stream) return spoil(capture, CAPTURE_IMPLICIT);
  if (stream->capture && stream->capture != capture) return spoil(capture, CAPTURE_ISOLATION);
  if (!stream->capture) stream->joined = 0;
  stream->capture = capture;
  stream->position = ++capture->position;
  if (find(event->source, STREAM) && event->source->joined < event->position)
    event->source->joined = event->position;
  return SUCCESS;
}
