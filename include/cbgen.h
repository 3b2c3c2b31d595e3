/* SPDX-License-Identifier: Apache-2.0 */
/* cbgen's C interface: a sparse matrix in, the text and the data of a CUDA kernel made for it out.
 *
 *   cbgen_context *context;
 *   cbgen_kernel *kernel;
 *   static cbgen_csr matrix;                            zero
 *   matrix.struct_size = sizeof matrix;
 *   …                                                   shape and arrays: see cbgen_csr
 *   if (cbgen_context_create(&context)) …
 *   if (cbgen_set(context, "arch", "sm_90") || cbgen_generate(context, &matrix, &kernel))
 *     fprintf(stderr, "%s\n", cbgen_message(context));
 *   fputs(cbgen_kernel_source(kernel, NULL), file);
 *   cbgen_kernel_free(kernel);
 *   cbgen_context_destroy(context);
 *
 * No call prints or exits. Functions that can fail return a cbgen_status and leave a message in their
 * context. A context serves one thread at a time; different contexts are independent of each other. A kernel
 * is immutable: any number of threads may read it, and it outlives the context that made it. Generation runs
 * on OpenMP threads, and its result does not depend on their number.
 */
#ifndef CBGEN_H
#define CBGEN_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CBGEN_API __attribute__((visibility("default")))
#else
#define CBGEN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Statuses are stable: numbers are never reused, new ones go to the end. */
typedef enum cbgen_status {
  CBGEN_OK = 0,
  CBGEN_ERROR_ARGUMENT = 1,    /* an argument or option without meaning, or out of range */
  CBGEN_ERROR_FORMAT = 2,      /* input bytes are not what their format says */
  CBGEN_ERROR_UNSUPPORTED = 3, /* meaningful, but not done by this version */
  CBGEN_ERROR_LIMIT = 4,       /* too large for the types it would have to fit */
  CBGEN_ERROR_MEMORY = 5,      /* an allocation failed */
  CBGEN_ERROR_IO = 6,          /* a file could not be read or written */
  CBGEN_ERROR_MISSING = 7,     /* the machine lacks something: a driver, NVRTC, a GPU */
  CBGEN_ERROR_COMPILE = 8,     /* the generated text did not compile */
  CBGEN_ERROR_DEVICE = 9,      /* a CUDA call failed */
  CBGEN_ERROR_WRONG = 10,      /* a check found a wrong result */
  CBGEN_ERROR_INTERNAL = 11    /* cbgen broke one of its own rules: please report it */
} cbgen_status;

/* "0.1.0": of the library that runs, which may be another than this header's. */
CBGEN_API const char *cbgen_version(void);

/* A short stable name: "ok", "argument", "memory", … Never NULL. */
CBGEN_API const char *cbgen_status_name(cbgen_status status);

/* ---- context: options and the last message */

typedef struct cbgen_context cbgen_context;

/* On success *context is the caller's (cbgen_context_destroy); on failure (memory) it is NULL. */
CBGEN_API cbgen_status cbgen_context_create(cbgen_context **context);
CBGEN_API void cbgen_context_destroy(cbgen_context *context); /* NULL is accepted */

/* Sets an option for the calls that follow. Names and values are those of the tool (`cbgen help options`:
 * "type", "form", "th1", …), and: "arch"      "sm_90" (standard), or another architecture that the tool lists
 *   "embed"     "auto" (standard: data up to 1 MiB stands in the text), "always", "never"
 * The strings are copied. CBGEN_ERROR_ARGUMENT: no such option, or no such value; nothing changes then. */
CBGEN_API cbgen_status cbgen_set(cbgen_context *context, const char *name, const char *value);

/* What went wrong in the last call that failed with this context; "" before the first failure. Stays valid
 * until the next call with the context. A NULL context gives "". */
CBGEN_API const char *cbgen_message(const cbgen_context *context);

/* ---- generation */

/* A matrix in compressed sparse row form, in host memory, 0-based. The arrays are only read, during the call.
 * Rows may be unsorted and hold duplicates (which are summed, in the order given); stored zeros count as
 * nonzeros. Zero-initialise it and set struct_size, so that later versions can add members. */
typedef struct cbgen_csr {
  size_t struct_size;     /* sizeof(cbgen_csr) */
  int64_t rows, cols;     /* at most 2^31 - 1 each */
  int64_t nnz;            /* entries of col_idx and values: row_ptr[rows] */
  int row_ptr_bits;       /* 32: row_ptr is int32_t[rows + 1]; 64: int64_t[rows + 1] */
  const void *row_ptr;    /* starts with 0, never decreases, ends with nnz */
  const int32_t *col_idx; /* nnz entries from 0 to cols - 1 */
  const double *values;   /* nnz entries; converted to the option "type" */
  const char *name; /* stands in the text and prefixes its functions; NULL: "matrix". Cut to 60 characters */
} cbgen_csr;

/* The product of a generation. */
typedef struct cbgen_kernel cbgen_kernel;

/* Analyses the matrix and writes its kernel. On success *kernel is the caller's (cbgen_kernel_free); on
 * failure it is NULL. The same matrix, options and version give the same bytes. CBGEN_ERROR_ARGUMENT: the
 * view is inconsistent (the message says where); CBGEN_ERROR_LIMIT, CBGEN_ERROR_MEMORY. */
CBGEN_API cbgen_status cbgen_generate(cbgen_context *context, const cbgen_csr *matrix, cbgen_kernel **kernel);
CBGEN_API void cbgen_kernel_free(cbgen_kernel *kernel); /* NULL is accepted */

/* All of these point into the kernel and live as long as it does. */

/* The CUDA text, NUL-terminated; *length (if not NULL) receives its bytes without the NUL. */
CBGEN_API const char *cbgen_kernel_source(const cbgen_kernel *kernel, size_t *length);

/* The data image that the text's NAME_load() takes: what the tool writes as kernel.cbd. */
CBGEN_API const void *cbgen_kernel_data(const cbgen_kernel *kernel, size_t *length);

/* 1 when the text carries the data image, so that NAME_load_embedded() exists; 0 when it must be given. */
CBGEN_API int cbgen_kernel_embedded(const cbgen_kernel *kernel);

/* The prefix NAME of the text's functions: the matrix's name as a C identifier. */
CBGEN_API const char *cbgen_kernel_symbol(const cbgen_kernel *kernel);

/* The plan: as one line, and as JSON. */
CBGEN_API const char *cbgen_kernel_plan(const cbgen_kernel *kernel);
CBGEN_API const char *cbgen_kernel_plan_json(const cbgen_kernel *kernel);

/* Bytes of all stored arrays: what one product reads beside x and y. */
CBGEN_API int64_t cbgen_kernel_stored_bytes(const cbgen_kernel *kernel);

#ifdef __cplusplus
}
#endif

#endif
