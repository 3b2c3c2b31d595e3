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

EXPORT unsigned cuStreamBeginCapture_v2(void *stream, unsigned mode) {
  static unsigned long long captures_begun;
  ENTER_CURRENT;
  struct thing *thing = find(stream, STREAM);
  if (check_stream(stream)) return INVALID_HANDLE;
  if (!thing) return CAPTURE_UNSUPPORTED; /* the legacy stream */
  if (thing->capture || mode > RELAXED) return ILLEGAL_STATE;
  struct capture *capture = calloc(1, sizeof *capture);
  if (!capture) abort();
  *capture =
      (struct capture){.origin = thing, .mode = (enum mode)mode, .thread = &own_mode, .next = captures};
  capture->id = ++captures_begun;
  capture->graph = create(GRAPH, thing->device);
  captures = thing->capture = capture;
  thing->position = thing->joined = 0;
  return SUCCESS;
}

static int is_joined(const struct capture *capture) {
  for (const struct thing *thing = first_thing(); thing; thing = thing->next)
    if (thing->kind == STREAM && thing->capture == capture && thing != capture->origin &&
        thing->joined < thing->position)
      return 0;
  return 1;
}

EXPORT unsigned cuStreamEndCapture(void *stream, void **graph) {
  ENTER_CURRENT;
  struct thing *thing = find(stream, STREAM);
  struct capture *capture = thing ? thing->capture : NULL;
  *graph = NULL;
  if (!capture || capture->origin != thing) return ILLEGAL_STATE;
  if (capture->mode != RELAXED && capture->thread != &own_mode) return spoil(capture, CAPTURE_WRONG_THREAD);
  const unsigned result = capture->invalidated ? CAPTURE_INVALIDATED
                          : is_joined(capture) ? SUCCESS
                                               : CAPTURE_UNJOINED;
  if (result)
    destroy(capture->graph);
  else
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
  ENTER_CURRENT;
  if (graph || dependencies || edges || count)
    return misuse(NOT_SUPPORTED, "the graph under capture is asked for");
  return status_of(stream, status, id);
}

/* ---- graphs */

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
