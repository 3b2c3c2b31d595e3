// SPDX-License-Identifier: Apache-2.0
/* What a device's memory comes from, and how much of it: the driver, or functions of the application (a pool's); a
 * limit; and the most that was taken at one time. A device with such a struct takes all its memory that way
 * (cb_device_alloc). Threads may allocate and free side by side. NULL is accepted everywhere: the driver's memory
 * without a limit. */
#ifndef CBGEN_RUNTIME_CUDA_MEMORY_H
#define CBGEN_RUNTIME_CUDA_MEMORY_H

#include "base/status.h"
#include "runtime/cuda/driver.h"

#include <stddef.h>
#include <stdint.h>

enum { CB_MEMORY_ALIGN = 256 }; /* what kernels and copies may rely on */

/* The application's functions; see cbgen_allocator. */
struct cb_memory_source {
  void *user, *stream;
  void *(*allocate)(void *user, size_t bytes, void *stream); /* NULL: the driver */
  void (*release)(void *user, void *memory, size_t bytes, void *stream);
};

struct cb_memory;

enum cb_status cb_memory_create(struct cb_memory **memory, struct cb_diag *diag);
void cb_memory_free(struct cb_memory *memory); /* blocks are not given back by it */

/* For what is allocated from now on. `limit` in bytes, 0: none; memory beyond it that is there already stays. */
void cb_memory_set(struct cb_memory *memory, const struct cb_memory_source *source, int64_t limit);
int cb_memory_has_source(const struct cb_memory *memory);

/* Bytes until the limit; INT64_MAX: there is none. */
int64_t cb_memory_room(struct cb_memory *memory);

/* The most bytes that were there at one time since the last mark, beyond those that were there then. */
void cb_memory_mark(struct cb_memory *memory);
int64_t cb_memory_peak(struct cb_memory *memory);

/* cb_device_alloc and cb_device_free, of a device that has one. The second returns whether the block came from here. */
enum cb_status cb_memory_alloc(const struct cb_device *device, cb_device_ptr *address, size_t bytes, const char *what,
                               struct cb_diag *diag);
int cb_memory_release(const struct cb_device *device, cb_device_ptr address);

/* cb_device_borrow and cb_device_give_back, likewise. A few blocks that were given back are spare, for who borrows
 * next: the driver's, where there is no limit. Memory that is refused is asked for again without them. The second
 * returns whether it keeps the block, and if not leaves it as it is. */
enum { CB_MEMORY_SPARES = 8 };
enum cb_status cb_memory_borrow(const struct cb_device *device, cb_device_ptr *address, size_t bytes, const char *what,
                                struct cb_diag *diag);
enum cb_status cb_memory_take(const struct cb_device *device, cb_device_ptr *address, size_t bytes, const char *what,
                              struct cb_diag *diag); /* cb_device_take, likewise */
int cb_memory_keep(const struct cb_device *device, cb_device_ptr address);
int cb_memory_keeps(const struct cb_device *device, cb_device_ptr address); /* cb_device_keeps */
void cb_memory_trim(const struct cb_device *device); /* gives spare blocks back to the driver */

#endif
