// SPDX-License-Identifier: Apache-2.0
/* What the files of the fake CUDA share (fake_driver.h says what it is for).
 *
 *   state.c     the control, the list of things, contexts, how every call begins
 *   memory.c    device memory, pinned memory, copies, what a pointer is
 *   modules.c   images, their compilation as C++, kernels
 *   works.c     work: what streams do, at once or when something waits for it; waiting; events
 *   streams.c   streams and events as handles
 *   graphs.c    captures, and the graphs they become
 *   driver.c    devices and their attributes, errors, contexts
 *   nvrtc.c     NVRTC
 *   machine.*   the emulator's thread
 *
 * Every exported function begins with ENTER or a relative of it: takes the one lock, counts the call, and
 * says whether it is the one that shall fail.
 */
#ifndef CBGEN_TESTS_FAKE_STATE_H
#define CBGEN_TESTS_FAKE_STATE_H

#include "tests/fake/kernel.h"
#include "tests/fake_driver.h"

#define EXPORT __attribute__((visibility("default")))

enum {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  INVALID_IMAGE = 200,
  INVALID_CONTEXT = 201,
  NO_BINARY_FOR_GPU = 209,
  INVALID_HANDLE = 400,
  ILLEGAL_STATE = 401,
  NOT_FOUND = 500,
  NOT_READY = 600,
  LAUNCH_FAILED = 719,
  COOPERATIVE_TOO_LARGE = 720,
  NOT_SUPPORTED = 801,
  CAPTURE_UNSUPPORTED = 900,
  CAPTURE_INVALIDATED = 901,
  CAPTURE_UNJOINED = 904,
  CAPTURE_ISOLATION = 905,
  CAPTURE_IMPLICIT = 906,
  CAPTURED_EVENT = 907,
  CAPTURE_WRONG_THREAD = 908
};
enum { MULTIPROCESSORS = 7, RESIDENT = 2 /* thread blocks on each */ };
enum { SHARED_PER_BLOCK = 227 << 10, PLAIN_SHARED = 48 << 10, FIRST_HANDLE = 40 };

extern struct fake_control state;

struct work;

/* ---- everything that was created, in one list */

enum kind { BLOCK, PINNED, MODULE, KERNEL, STREAM, EVENT, GRAPH, EXEC, PROGRAM };

struct thing {
  enum kind kind;
  int device;  /* whose context it belongs to */
  int app;     /* the application's: in no account */
  char *bytes; /* BLOCK: the host's view of it; PINNED: itself; MODULE: a copy of the image; PROGRAM: its text
                */
  size_t length;
  uint64_t address;                     /* BLOCK: on the device */
  char name[128];                       /* KERNEL, PROGRAM */
  const struct fake_kernel *kernels;    /* MODULE: what was compiled; NULL: for the hook alone */
  struct thing *module;                 /* KERNEL: where it is from */
  const struct fake_kernel *kernel;     /* KERNEL; NULL: for the hook alone */
  int dynamic_shared, registers, stack; /* KERNEL, MODULE */
  int any_cluster; /* KERNEL: a cluster may have more than 8 thread blocks */
  unsigned flags;                       /* STREAM, EVENT */
  struct capture *capture;              /* STREAM: being captured; EVENT: recorded in a capture */
  struct thing *source;                 /* EVENT: the stream that recorded it last */
  long asked, done;                     /* EVENT: records asked for, records that came by */
  long position, joined;      /* STREAM: of its last work in a capture; as far as another one waits for it */
  long stamp;                 /* EVENT: the clock at its record */
  struct work *first, **last; /* GRAPH, EXEC: what it does; STREAM: what it has still to do */
  char *log;                  /* PROGRAM */
  char *ptx;                  /* PROGRAM */
  struct thing *next;
};

struct thing *create(enum kind kind, int device);
struct thing *find(const void *handle, enum kind kind);
void destroy(struct thing *thing); /* with what it owns; a module's kernels, too */
struct thing *first_thing(void);

/* ---- calls */

unsigned misuse(unsigned result, const char *format, ...) __attribute__((format(printf, 2, 3)));

int lock_state(void);
void unlock_state(const int *held);
#define LOCK __attribute__((cleanup(unlock_state), unused)) const int lock_held = lock_state()

unsigned enter(const char *function);
unsigned enter_current(const char *function); /* needs a current context that has not failed */
unsigned enter_unsafe(const char *function);  /* besides is forbidden while a stream is captured */

#define ENTER_AS(how)                                                                                        \
  LOCK;                                                                                                      \
  do {                                                                                                       \
    const unsigned result_of_enter = how(__func__);                                                          \
    if (result_of_enter) return result_of_enter;                                                             \
  } while (0)
#define ENTER ENTER_AS(enter)
#define ENTER_CURRENT ENTER_AS(enter_current)
#define ENTER_UNSAFE ENTER_AS(enter_unsafe)

/* ---- contexts: one for each device, the primary one */

struct context {
  int retained, app_retained; /* by the library; by the application */
  unsigned long long id;      /* 0: not alive; never given to another */
  unsigned failure;           /* of a kernel: what every call returns from then on */
};
extern struct context contexts[FAKE_DEVICES];

void begin_context(int device); /* gives it an id, unless it is alive */
int current_device(void);           /* of the calling thread's context; −1: none */
int capability_of(int device);      /* 90 */
void release_leftovers(int device); /* complains about what the library left in its context */

/* ---- memory.c */

/* A block of `bytes` on the device, in no account yet; NULL: no memory. */
struct thing *allocate(int device, size_t bytes);
void release_block(struct thing *block); /* part of destroy */
/* The host's view of `count` bytes that lie in one block of the device (−1: of any), or in pinned memory;
 * else NULL. */
void *view(uint64_t address, size_t count, int device);
/* Checks the addresses of a copy or a fill against the work's device, and does it. */
unsigned check_copy(const struct work *work);
unsigned perform_copy(const struct work *work);
/* For the time of a launch a device's memory can be reached through its own addresses. The second returns the
 * block beside whose ends something was written, or NULL. */
void open_memory(int device);
const struct thing *close_memory(int device);

/* ---- works.c */

enum work_kind { LAUNCH, COPY_TO_DEVICE, COPY_TO_HOST, COPY_ON_DEVICE, FILL, BESIDE, RECORD, WAIT, LOOP };

/* One thing that a stream does. */
struct work {
  enum work_kind kind;
  int device;
  struct thing *kernel; /* LAUNCH */
  struct fake_launch launch;
  uint64_t to, from; /* addresses or pointers */
  size_t bytes;
  unsigned char byte;  /* FILL */
  void (*run)(const void *data); /* BESIDE: with so many `bytes` at `from`, copied where the work waits */
  struct thing *event; /* RECORD, WAIT */
  long number;         /* of the event's record */
  struct thing *body;  /* LOOP: a graph, the work's own */
  unsigned long long condition; /* LOOP: its number */
  void *owned;         /* a copy of the parameters, or of pageable memory */
  struct work *next;
};

/* Checks all of the work and the stream, and does the work, or puts it into the stream's queue or graph. */
unsigned submit(const struct work *work, void *stream);
struct work *append_work(struct thing *list, const struct work *work); /* a copy, which it returns */
void free_works(struct work *work);
unsigned check_work(const struct work *work);
unsigned perform(const struct work *work);
int is_legacy(const void *stream);
unsigned check_stream(const void *stream); /* one of the current context */
unsigned wait_for_stream(void *stream);    /* NULL: the legacy stream, and all that it waits for */
void finish(struct thing *queue);          /* does the work in it */
void finish_device(int device, int blocking_only);
void forget_queues(void);

/* ---- streams.c */

unsigned destroy_handle(void *handle, enum kind kind, unsigned result);

/* ---- graphs.c */

int forbids_unsafe(void);    /* whether a capture forbids the calling thread's call; spoils it then */
unsigned check_legacy(void); /* whether one forbids the use of the legacy stream; likewise */
unsigned spoil(struct capture *capture, unsigned result); /* returns the result */
unsigned record(struct thing *stream, const struct work *work);
unsigned perform_loop(const struct work *work);
/* What a kernel does that sets a condition; others are misuses. */
void set_condition(unsigned long long condition, unsigned value);
struct thing *copy_body(const struct thing *body);
/* Brings the stream into the event's capture, or notes that it waits for a stream of it. */
unsigned wait_captured(struct thing *stream, const struct thing *event);
void forget_captures(void);

/* ---- modules.c */

unsigned check_launch(const struct work *work); /* addresses among the parameters, the module still there */
unsigned perform_launch(const struct work *work);

#endif
