/* SPDX-License-Identifier: Apache-2.0 */
/* cbgen's C interface: a sparse matrix in, a CUDA kernel made for it out: as a loaded operator, or as text.
 *
 *   cbgen_context *context;
 *   cbgen_operator *A;
 *   cbgen_csr matrix = {sizeof matrix};                 the rest is zero
 *   …                                                   shape and arrays: see cbgen_csr
 *   if (cbgen_context_create(&context)) …
 *   if (cbgen_compile(context, &matrix, NULL, &A)) fprintf(stderr, "%s\n", cbgen_message(context));
 *   cbgen_product product = {.struct_size = sizeof product, .alpha = 1.0, .beta = 0.0, .x = x, .y = y,
                              .stream = stream};
 *   for (…) cbgen_multiply(A, &product);                y = A x on the stream, one kernel launch
 *   cbgen_operator_free(A);
 *   cbgen_context_destroy(context);
 *
 * Functions that can fail return a cbgen_status and leave a message in their context (cbgen_message) or, where
 * they take no context, in their operator (cbgen_operator_message). No call prints, exits or throws; there is
 * no global state but what cbgen_trim gives back, and binaries of families, which a process's contexts and operators
 * share and the last of them forgets unless something is kept for cbgen_trim. Structs that callers fill start with
 * `struct_size`, set to their sizeof, and are zero-initialised, so that later versions can add members whose zero means
 * what it meant before.
 *
 * Threads. A context serves one thread at a time; different contexts are independent of each other, also on
 * different GPUs. Operators and kernels outlive the context that made them. Kernels are immutable. What
 * operators permit stands at cbgen_multiply. Set-up runs on OpenMP threads, and its result does not depend on
 * their number.
 *
 * CUDA. The driver and NVRTC are opened when they are first needed; generation needs neither. Streams and
 * device pointers are those of the CUDA run-time API and of the driver API alike. A context works on the CUDA
 * context that is current on the calling thread when it first needs one, or, when there is none or the option
 * "device" is set, on that GPU's primary context (the one that the run-time API uses).
 *
 * Fork. A forked child may use the library, but not while another thread of its parent was inside one of its calls. The
 * thread that forked works without OpenMP's other threads there, which are its parent's; threads that it starts have
 * their own. CUDA works on one side of a fork only: in a child, a context, operator or kernel of the parent tells what
 * it told there, can be freed, and refuses what needs the GPU (CBGEN_ERROR_DEVICE) without a call to the driver. A
 * child may open the GPU itself when the parent had not. This needs the library to be loaded before the fork.
 *
 * Trust. Matrices may come from anywhere: nothing of them is executed. A saved operator and an entry of the cache carry
 * machine code: load operators from those whose programs you would run, and name as cache a directory that only you can
 * write to (one that others can is not used). Arrays and vectors are aligned to their elements.
 *
 * Set-user-ID. In a process with more rights than whoever started it, no environment variable is believed: libraries
 * are those that the loader, /usr/local and /usr have, and there is no cache unless the option "cache" names it.
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

/* Of this header. Until 1.0.0 another minor number means an incompatible interface, which the library's soname shows:
 * libcbgen.so.0.1. Numbers can be compared in #if: CBGEN_VERSION is 10000 major + 100 minor + patch. */
#define CBGEN_VERSION_MAJOR 0
#define CBGEN_VERSION_MINOR 1
#define CBGEN_VERSION_PATCH 0
#define CBGEN_VERSION (CBGEN_VERSION_MAJOR * 10000 + CBGEN_VERSION_MINOR * 100 + CBGEN_VERSION_PATCH)

/* "0.1.0": of the library that runs, which may be another than this header's. */
CBGEN_API const char *cbgen_version(void);

/* A short stable name: "ok", "argument", "memory", … Never NULL. */
CBGEN_API const char *cbgen_status_name(cbgen_status status);

/* ---- context: options and the last message */

typedef struct cbgen_context cbgen_context;

/* On success *context is the caller's (cbgen_context_destroy); on failure (memory) it is NULL. */
CBGEN_API cbgen_status cbgen_context_create(cbgen_context **context);
CBGEN_API void cbgen_context_destroy(cbgen_context *context); /* NULL is accepted */

/* What took milliseconds to get stays in a CUDA context that is the application's when its last cbgen context and
 * operator are gone, for the next ones there (needs CUDA 12): 16 MiB of pinned memory, up to 16 MiB of the GPU's,
 * loaded kernels, those of up to 64 families among them, and up to 32 MiB of families' binaries. This gives it back,
 * from the CUDA context that is current on the calling thread. It is not needed before that one's own end. */
CBGEN_API void cbgen_trim(void);

/* Sets an option for the calls that follow. Names and values are those of the tool (`cbgen help options`:
 * "recipe", "type", "form", "th1", …), and:
 *   "arch"        for cbgen_generate: "sm_90" (standard), or another architecture that the tool lists
 *   "embed"       for cbgen_generate: "auto" (standard: data up to 1 MiB stands in the text), "always", "never"
 *   "device"      number of a GPU; "current" (standard): see above. Takes effect before the GPU is first needed
 *   "threads"     of OpenMP, that analysis and packing take on the calling thread's behalf: "auto" (standard: as the
 *                 application has set it, omp_get_max_threads(), within a container's quota), or a number; fewer where
 *                 there is little to do. Results do not depend on it
 *   "memory-limit" bytes of device memory ("512M", "4G") that the context and its operators may have together; "none":
 *                 as many as there are (standard). What would take more fails with CBGEN_ERROR_MEMORY. Kernels' code
 *                 and what CUDA takes for itself do not count
 *   "nvrtc"       NVRTC's file, or the directory that it is in; "" (standard): $CBGEN_NVRTC, else as the loader finds
 *                 it, in CUDA's directories and in Python's. Takes effect before NVRTC is first needed
 *   "cache"       directory of the kept kernels; "" for none. Standard: $CBGEN_CACHE_DIR, else
 *                 $XDG_CACHE_HOME/cbgen, else ~/.cache/cbgen
 *   "cache-path"  directories, separated by ':', where kernels are looked up that "cache" lacks: only read, so that
 *                 they may be a site's; they belong to root or to the user. Standard: $CBGEN_CACHE_PATH
 *   "cache-limit" bytes that it may hold ("4G", "512M"); standard: $CBGEN_CACHE_SIZE, else 4G
 *   "cache-data"  what is kept beside plan, text and binary: "auto" (standard: the packed indices too, when
 *                 they take up to 256 MiB), "always", "never"
 *   "epilogue"    statements for each row, for requests without their own and for cbgen_generate; see cbgen_argument.
 *                 "" (standard): none
 *   "pack"        where matrices in CSR are planned from and packed: "auto" (standard: on the device by recipes that
 *                 can, named ones, from 2^20 nonzeros on), "host", "device" (whenever that is possible; recipe auto
 *                 is then chosen among those that can). On the device columns and values never come to the host,
 *                 those of a host matrix are copied there first, and a cache keeps no packed indices of them, so
 *                 "auto" with cache-data=always means the host. Rows that do not ascend strictly, transposed
 *                 matrices and fixed values are packed on the host in any case. Of kept data of a matrix there,
 *                 "auto" has kernels fill the arrays where that spares uploads of 4 MiB and more
 *   "tune"        "model" (standard: the recipe that the cost model says), "measure" (the best few are compiled
 *                 and timed on the GPU; the winner is kept in the cache), "off" (sell, without a search)
 *   "search"      "profile" (standard for cbgen_compile: counts of the matrix choose the recipe, which is planned
 * alone),
 *                 "hopeful" (all that can win are planned and compared, as the tool does), "all"
 *   "type"        "auto" (standard for cbgen_compile: f64 for F64 values, f32 for F32, f16-f32 and bf16-f32 for
 *                 half ones, c64 and c128 for complex ones), or as the tool has it; with f16 and bf16 x and y are half,
 *                 too, and sums floats; with c64 and c128 all are complex, and values may be real
 *   "conjugate"   "on": products are those of the matrix with conjugated values, which real ones are. Standard: "off"
 *   "form"        cbgen_compile takes "axpby" (standard there: any alpha and beta), "ax", "add"
 *   "semiring"    "plus-times" (standard), "min-plus", "max-times", "or-and": what products add and multiply with. All
 *                 but the first take alpha 1, and beta 0 (y = A x) or 1 (y = y + A x, with that sum). A row without
 *                 nonzeros gives 0, infinity, -infinity, 0. A product that is NaN is passed over; to or-and, what is
 *                 not zero is true. Zeros that are stored are entries
 * The strings are copied. CBGEN_ERROR_ARGUMENT: no such option, or no such value; nothing changes then. */
CBGEN_API cbgen_status cbgen_set(cbgen_context *context, const char *name, const char *value);

/* What went wrong in the last call that failed with this context; "" before the first failure. Stays valid
 * until the next call with the context. A NULL context gives "". */
CBGEN_API const char *cbgen_message(const cbgen_context *context);

/* Is told, one line at a time and without line ends, what compiling did: the recipe chosen, cache hits and
 * misses and why, times. Called on the thread of the call that it is about, in between; it must not use the
 * context. NULL: no more. */
typedef void (*cbgen_log)(void *user, const char *line);
CBGEN_API cbgen_status cbgen_set_log(cbgen_context *context, cbgen_log log, void *user);

/* Device memory of the application's own: a pool's, such as RMM's, PyTorch's or PETSc's. */
typedef void *(*cbgen_allocate)(void *user, size_t bytes, void *stream);
typedef void (*cbgen_release)(void *user, void *memory, size_t bytes, void *stream);

typedef struct cbgen_allocator {
  size_t struct_size; /* sizeof(cbgen_allocator) */
  void *user;         /* handed to both functions, as it is */
  void *stream;       /* likewise: CUDA stream in whose order memory is given and taken; NULL: the default stream */
  cbgen_allocate allocate; /* `bytes` (at least 1) of device memory, at a multiple of 256; NULL: there are none */
  cbgen_release release;   /* what `allocate` gave, once */
} cbgen_allocator;

/* All device memory of the context and its operators comes from these functions and goes back to them; NULL: from the
 * driver. Takes effect before the GPU is first needed. They are called with the CUDA context current, `allocate` on
 * the thread of the call that needs memory, `release` also on a thread that frees an operator; they must not use the
 * context or its operators. They must work until the context and the last of its operators are gone. Before memory is
 * used, the stream is waited for, unless it is the default stream; when it is released, no work uses it any more.
 * Products allocate nothing. CBGEN_ERROR_ARGUMENT: a function is missing, or it is too late. */
CBGEN_API cbgen_status cbgen_set_allocator(cbgen_context *context, const cbgen_allocator *allocator);

/* ---- matrices */

/* Complex numbers are two floats (C64) or two doubles (C128), the real part first, aligned to both together, as
 * cuComplex and cuDoubleComplex are. */
typedef enum cbgen_type {
  CBGEN_F64 = 0,
  CBGEN_F32 = 1,
  CBGEN_F16 = 2,
  CBGEN_BF16 = 3,
  CBGEN_C64 = 4,
  CBGEN_C128 = 5
} cbgen_type;

/* Where arrays lie. Managed memory may be called either. */
typedef enum cbgen_memory { CBGEN_HOST = 0, CBGEN_DEVICE = 1 } cbgen_memory;

/* A matrix in compressed sparse row form. The arrays are only read, during the call; from device memory after
 * the work that `stream` holds. Rows may be unsorted and hold duplicates (which are summed, in the order
 * given); stored zeros count as nonzeros. */
typedef struct cbgen_csr {
  size_t struct_size;   /* sizeof(cbgen_csr) */
  int64_t rows, cols;   /* at most 2^31 - 1 each */
  int64_t nnz;          /* entries of col_idx and values */
  const void *row_ptr;  /* rows + 1 entries: starts with index_base, never decreases, ends with index_base + nnz */
  const void *col_idx;  /* nnz entries from index_base to index_base + cols - 1 */
  const void *values;   /* nnz entries of value_type; NULL: all are 1 */
  int row_ptr_bits;     /* 0 or 32: int32_t; 64: int64_t */
  int col_idx_bits;     /* likewise */
  int index_base;       /* 0 or 1 */
  cbgen_type value_type;
  cbgen_memory memory;  /* of all three arrays; cbgen_generate takes CBGEN_HOST only */
  void *stream;         /* CUDA stream on which device arrays become ready; NULL: the default stream */
  const char *name; /* NULL: "matrix". Cut to 60 characters. cbgen_generate: stands in the text and prefixes its
                     * functions; cbgen_compile: for the log and for lists of the cache */
} cbgen_csr;

typedef enum cbgen_format { CBGEN_CSR = 0, CBGEN_CSC = 1, CBGEN_COO = 2, CBGEN_BSR = 3 } cbgen_format;

/* A matrix in any of these forms:
 *
 *   format  `pointers`                            `indices`                `values`
 *   CSR     rows + 1: where rows begin            nnz: columns             nnz
 *   CSC     cols + 1: where columns begin         nnz: rows                nnz
 *   COO     nnz: rows                             nnz: columns             nnz
 *   BSR     rows / block_rows + 1: where rows     nnz: block columns,      nnz * block_rows * block_cols: block by
 *           of blocks begin, counted in blocks    counted in blocks        block, row by row in each
 *
 * What stands at cbgen_csr holds for all of them: order and duplicates are free (values of duplicates are summed in the
 * order given), and cbgen_update takes values in the order of `values`. Every place of a block of BSR is a nonzero. The
 * arrays are not copied where their order permits that: CSC is the transposed matrix's CSR, and of COO whose rows
 * ascend the row pointers are made alone; COO in another order and BSR take 8 to 12 bytes of host memory for each
 * nonzero during the call. COO and BSR in device memory are brought to the host to be hashed. */
typedef struct cbgen_matrix {
  size_t struct_size; /* sizeof(cbgen_matrix) */
  cbgen_format format;
  int64_t rows, cols; /* at most 2^31 - 1 each; of BSR multiples of a block's */
  int64_t nnz;        /* entries of `indices`: nonzeros, duplicates included; of BSR blocks */
  const void *pointers;
  const void *indices;
  const void *values; /* of value_type; NULL: all are 1 */
  int pointer_bits;   /* of an entry of `pointers`; 0 or 32: int32_t; 64: int64_t */
  int index_bits;     /* likewise */
  int index_base;     /* 0 or 1, of `pointers` and `indices` */
  cbgen_type value_type;
  cbgen_memory memory; /* of all three arrays; cbgen_generate_matrix takes CBGEN_HOST only */
  void *stream;        /* as in cbgen_csr, and so is `name` */
  const char *name;
  int block_rows, block_cols; /* of BSR: 1 to 64 each; of others 0 */
  int blocks_by_column;       /* 1: values of a block column by column */
} cbgen_matrix;

/* ---- operators: compile once, multiply often */

/* A matrix on a GPU with the kernel that multiplies it. */
typedef struct cbgen_operator cbgen_operator;

typedef enum cbgen_values {
  CBGEN_VALUES_STORED = 0,  /* values are data; cbgen_update_values refuses. With the option "values" at "fixed":
                             * as the last */
  CBGEN_VALUES_MUTABLE = 1, /* likewise, and may be renewed: takes 0.5 to 5 more bytes of device memory per value */
  CBGEN_VALUES_FIXED = 2    /* will never change: what they have in common may become part of the kernel */
} cbgen_values;

/* Kernels are of two tiers, which give the same bits. A family's kernel serves all matrices of one structure and gets
 * their sizes as data: it is there at once where the library brings it, and is compiled once where not. The specialised
 * kernel is made for the one matrix, with all that is known of it in its text: it is a little faster, and NVRTC takes
 * about a tenth of a second for it. */
typedef enum cbgen_tier { CBGEN_TIER_SPECIALISED = 0, CBGEN_TIER_FAMILY = 1 } cbgen_tier;

typedef enum cbgen_specialise {
  CBGEN_SPECIALISE_AUTO = 0,  /* where `expected_products` repay it, or the cache has it, or there is no family */
  CBGEN_SPECIALISE_NOW = 1,   /* at once */
  CBGEN_SPECIALISE_NEVER = 2  /* only where there is no family (fixed values, or a layout without one) */
} cbgen_specialise;

/* Whether an operator works in an order of its own, in which products find what they need of x nearer together. Its
 * vectors have that order then, which cbgen_operator_permutation tells. */
typedef enum cbgen_reorder {
  CBGEN_REORDER_NONE = 0,
  CBGEN_REORDER_SYMMETRIC = 1,  /* P A P^T of a square matrix: x and y have one order, as solvers need it */
  CBGEN_REORDER_UNSYMMETRIC = 2 /* P A Q: x and y have an order each */
} cbgen_reorder;

/* What the caller promises of a square matrix's values, those that come by cbgen_update_values included. Its pattern
 * must be symmetric. Entry (j, i) has the bits of entry (i, j), those with the other sign, or of a complex matrix those
 * with the imaginary part's other sign; then about half of the matrix is stored where that is faster (the option
 * "symmetric-storage"), the lower triangle counts, and what stands above the main diagonal is not read, but in a
 * skew-symmetric or Hermitian matrix whose recipe stores part of it as it is. With the option "check-symmetry" at "on"
 * values that break the promise are found: cbgen_operator_check. */
typedef enum cbgen_symmetry {
  CBGEN_SYMMETRY_OPTION = 0, /* what the option "symmetric" says; as a standard only fixed values are looked at */
  CBGEN_SYMMETRIC = 1,
  CBGEN_SKEW_SYMMETRIC = 2,
  CBGEN_UNSYMMETRIC = 3,     /* nothing is promised, and nothing looked for */
  CBGEN_HERMITIAN = 4        /* of complex types only */
} cbgen_symmetry;

typedef struct cbgen_request {
  size_t struct_size;        /* sizeof(cbgen_request) */
  int64_t expected_products; /* bounds the effort of analysis and tuning: set-up that this many products cannot
                              * repay is left out. 0: many for analysis, not known for `specialise` */
  cbgen_values values;
  int transpose;             /* 1: the operator of the transposed matrix, with a plan of its own */
  cbgen_specialise specialise;
  const char *epilogue;      /* statements for each row; NULL: none. See cbgen_argument */
  int vectors;               /* 2 and more: the operator also multiplies with so many vectors at once, up to 32 of them
                              * in one pass over the matrix: cbgen_multiply_many. Nothing is stored twice; there
                              * is no family of such kernels, so compiling takes NVRTC unless the cache has it. 0 or 1:
                              * it does not */
  cbgen_reorder reorder;     /* Where columns by falling number of nonzeros, or reverse Cuthill-McKee, bring what
                              * products need of x nearer together, the operator works in that order. The matrix is
                              * looked at on the host, in 50 to 130 ns for each nonzero, also where the cache has the
                              * kernel: for matrices of many products */
  cbgen_symmetry symmetric;  /* with `transpose` of the transposed matrix, whose lower triangle counts then. Such a
                              * matrix is planned and packed on the host */
  int device_scalars;        /* 1: products take alpha and beta from device memory (cbgen_product.alpha_device), so that
                              * what one kernel computes scales the next one's result without the host. Form axpby,
                              * semiring plus-times, one vector. There is no family of such kernels. 0: by value */
  int split;                 /* 1: values, vectors and sums of double, and each value is stored as a float, its head,
                              * and what that lacks of it. Nothing is lost and nothing stored twice: products have the
                              * bits of ordinary ones, and those with `heads` of cbgen_product read half of the bytes.
                              * Values are 0, infinite, NaN or of a size from 2^-126 to 3.4e38, else CBGEN_ERROR_LIMIT.
                              * Such a matrix is planned and packed on the host; there is no family of such kernels,
                              * and none with an epilogue. The same as the option "type" at "split-f64" */
  int conjugate;             /* 1: values are conjugated; with `transpose` that is the conjugate transpose. Of real
                              * types nothing changes. The same as the option "conjugate" at "on" */
  const char *solver;        /* A method of cbgen_solver_create: the operator is for its solutions, of which another
                              * recipe may be the fastest than of products. With the option "tune" at "measure"
                              * iterations are timed beside products, which compiles up to six solvers. NULL: for
                              * products. Either has products and solvers */
} cbgen_request;

/* Complex matrices are multiplied with complex vectors, and their sums are complex. Each part of a product is a sum of
 * real ones, two for each nonzero, which are added by one fma each; an infinite part of x gives NaN where a value has a
 * part that is 0, as those sums say. Such operators are planned and packed on the host, and always have a specialised
 * kernel. Recipes of layouts that take real numbers only (cb, tile, hotcold and theirs), several vectors in one pass,
 * epilogues and device_scalars, other semirings, atomics, solvers, linear programs and batches, and
 * CBGEN_CHECK are CBGEN_ERROR_UNSUPPORTED; recipe auto chooses among the others. */

/* Analyses the matrix, writes its kernel, compiles it and loads it with its arrays on the context's GPU; what
 * the cache has is not done again. `request` NULL: all its members zero. Everything that products need happens
 * here. On success *op is the caller's (cbgen_operator_free); on failure it is NULL and nothing is left
 * behind. CBGEN_ERROR_ARGUMENT: the view is inconsistent (the message says where); CBGEN_ERROR_MISSING: no
 * driver, GPU or NVRTC; CBGEN_ERROR_MEMORY (host or device), CBGEN_ERROR_LIMIT, CBGEN_ERROR_COMPILE,
 * CBGEN_ERROR_DEVICE. A cache that is broken or full costs time only. After the first long copy to the GPU a
 * context keeps 16 MiB of pinned memory for the next ones: see cbgen_trim. */
CBGEN_API cbgen_status cbgen_compile(cbgen_context *context, const cbgen_csr *matrix,
                                     const cbgen_request *request, cbgen_operator **op);

/* The same for other forms than CSR. */
CBGEN_API cbgen_status cbgen_compile_matrix(cbgen_context *context, const cbgen_matrix *matrix,
                                            const cbgen_request *request, cbgen_operator **op);

/* Another handle on the same kernel and arrays, with scratch of its own. Values renewed through one handle
 * are those of all. */
CBGEN_API cbgen_status cbgen_operator_clone(cbgen_operator *op, cbgen_operator **clone);

/* Compiles the specialised kernel of an operator that multiplies with a family's, on the caller's thread by NVRTC, and
 * keeps it in the cache. From then on all handles multiply with it: products may be running, on any thread; graphs
 * keep the kernels that they captured. Nothing to do: CBGEN_OK. CBGEN_ERROR_MISSING: no NVRTC. On failure nothing
 * changes. */
CBGEN_API cbgen_status cbgen_operator_specialise(cbgen_operator *op);

/* The caller sees to it that no product is still running. The arrays go with the last handle. */
CBGEN_API void cbgen_operator_free(cbgen_operator *op); /* NULL is accepted */

/* An epilogue is text that is executed for each row, once its entry `ax` of A x is known, by the product's kernel:
 *
 *   "in b; out r; r = b - ax; rr = dot(r, r);"
 *
 * declares two vectors and gives r = b - A x and its square length. Vectors are declared by in, out or inout, a number
 * given by value by scalar, one in device memory by device; each perhaps with double or float, else vectors have the
 * operator's vector type, and numbers that of its sums. Statements assign to vectors, or to new names, from + - * /,
 * comparisons with ?:, abs, sqrt, min, max, fma, `ax` and `row` (from 0). dot, sum and max of one number go over all
 * rows, in a fixed order, so that their bits repeat; they take scratch and a second launch. What is wrong with a text
 * shows in the message, with line and column, as CBGEN_ERROR_ARGUMENT. docs/library.md has the whole grammar.
 *
 * Such an operator does not write y: its products are A x, and what the statements say. It has no family, so compiling
 * takes NVRTC unless the cache has it. */
typedef struct cbgen_argument {
  const char *name; /* as the epilogue has it */
  void *pointer;    /* in device memory, aligned: a vector of `rows` elements, a number, or where a result goes */
  double value;     /* of a scalar */
} cbgen_argument;

/* y = alpha A x + beta y, or with "semiring" what that says. x: cols, y: rows elements of the operator's vector type
 * (cbgen_info), in device memory, not overlapping. With beta = 0 y is not read. With an epilogue alpha is 1, beta 0 and
 * y NULL, and each name that it declares, or gives to a reduction, is among the arguments, once; out and inout vectors
 * overlap nothing else. */
typedef struct cbgen_product {
  size_t struct_size; /* sizeof(cbgen_product) */
  double alpha, beta;
  const void *x;
  void *y;
  void *stream; /* cudaStream_t or CUstream; NULL: the default stream */
  const cbgen_argument *arguments; /* of the epilogue, in any order; read during the call */
  int arguments_count;
  void *z; /* `rows` elements that receive the result in place of y, which is only read; NULL: y receives it. With beta
            * other than 0 it costs a copy of y on the stream beforehand. NULL with an epilogue */
  const void *alpha_device; /* both, where the request asked for device_scalars, else NULL: numbers of the sums' type */
  const void *beta_device;  /* (cbgen_info) in device memory, read when the kernel runs. alpha and beta do not count
                             * then; y is read whatever beta is, but counts for nothing where that is 0; z costs a copy
                             * of y. The bits are those of the same alpha and beta by value */
  int heads; /* 1: of an operator with split values (cbgen_request): with each value rounded to a float, its head. Sums
              * are of double, as always */
  double alpha_imag, beta_imag; /* imaginary parts of alpha and beta, of an operator with complex vectors; of others 0.
                                 * Where they are 0, each part of a number is multiplied alone: nothing that is infinite
                                 * in one reaches the other. beta is 0 where both of its parts are */
} cbgen_product;

/* Puts the product on the stream: kernel launches, nothing else: no allocation, no synchronisation; it may be
 * captured in a CUDA graph. Any thread. An operator without scratch (cbgen_info) may be used on any number of
 * streams at once. One with scratch serves one stream: the first product chooses it, and products on another
 * are refused with CBGEN_ERROR_ARGUMENT (clone the operator, or call cbgen_operator_unbind once its products
 * are done). Graphs that share such an operator must not run at the same time. CBGEN_ERROR_DEVICE: the launch
 * failed; what a kernel does wrong later shows in the stream, as with every kernel. */
CBGEN_API cbgen_status cbgen_multiply(cbgen_operator *op, const cbgen_product *product);
CBGEN_API void cbgen_operator_unbind(cbgen_operator *op);

/* How X and Y of several products lie: entry i of vector v is element i * ld + v, or v * ld + i. */
typedef enum cbgen_order { CBGEN_BY_ROW = 0, CBGEN_BY_COLUMN = 1 } cbgen_order;

/* Y = alpha A X + beta Y for several vectors: X has cols, Y rows entries of each, in device memory, not overlapping. */
typedef struct cbgen_products {
  size_t struct_size; /* sizeof(cbgen_products) */
  int vectors;        /* 1 and more */
  cbgen_order order;
  int64_t ldx, ldy;   /* elements from a row to the next one, at least `vectors`; or from a column to the next one, at
                       * least cols and rows. 0: as many as that */
  double alpha, beta; /* as in cbgen_product */
  const void *x;
  void *y;
  void *stream;
  double alpha_imag, beta_imag; /* likewise */
} cbgen_products;

/* Puts the products on the stream, otherwise as cbgen_multiply. As many vectors are multiplied in one pass over the
 * matrix as the operator was compiled for (cbgen_request, cbgen_info), the rest in further passes; recipes other than
 * sell, dia, blocks and merge, and those made of them, take a pass for each. By rows it is fastest where x, y, and a
 * row's bytes are multiples of 16; where that is faster, X by columns is laid out by rows in the operator's scratch
 * before (option "copy-x"). A vector's result has the bits of its own product (but with 'atomics'), and what other
 * vectors hold, NaN or infinity, does not reach it.
 * CBGEN_ERROR_UNSUPPORTED: by rows, and the operator was compiled for one vector. */
CBGEN_API cbgen_status cbgen_multiply_many(cbgen_operator *op, const cbgen_products *products);

/* r = b - A x on the stream, as cbgen_multiply with alpha -1, beta 1, y = b and z = r: b and r have `rows` elements,
 * and may be the same. */
CBGEN_API cbgen_status cbgen_residual(cbgen_operator *op, const void *b, const void *x, void *r, void *stream);

/* The diagonal of a matrix, as many numbers as the lesser of rows and columns, 0 where there is no entry, those of
 * duplicates summed: to `diagonal` in device memory, double or complex where the vectors of an operator that this
 * context compiles of the matrix are, else float. A matrix in device memory comes to the host for that. Waits until the
 * numbers are there. */
CBGEN_API cbgen_status cbgen_diagonal(cbgen_context *context, const cbgen_csr *matrix, void *diagonal);

/* The inverses of the `size` by `size` (2 to 16) blocks along a square matrix's diagonal, the last of which may be
 * smaller, for cbgen_solver_options: to `inverses` in device memory, of the types of cbgen_diagonal. Entry (row, i) of
 * a block's inverse, of the matrix's row `row`, is number i * rows + row of size * rows; what is beyond the last row
 * is 0. Blocks that are singular count as their diagonals, in which 0 counts as 1. Waits until the numbers are there.
 * */
CBGEN_API cbgen_status cbgen_block_diagonal(cbgen_context *context, const cbgen_csr *matrix, int size, void *inverses);

/* New values for the same pattern, in the order of the arrays that the operator was compiled from, duplicates
 * included. */
typedef struct cbgen_update {
  size_t struct_size; /* sizeof(cbgen_update) */
  const void *values; /* as many as the matrix had entries */
  cbgen_type value_type;
  cbgen_memory memory;
  void *stream;
} cbgen_update;

/* From device memory: puts the renewal on the stream; later products there see the new values; may be captured.
 * From host memory: the same through a staging buffer that the first such call allocates (so that one cannot
 * be captured; later ones can when the values lie in pinned memory); pageable values may be reused on return.
 * Products on other streams are the caller's to order. CBGEN_ERROR_ARGUMENT when the operator was not compiled
 * with CBGEN_VALUES_MUTABLE. Values beyond a half type's range become infinite, and those without a split form NaN,
 * which cbgen_operator_check finds. */
CBGEN_API cbgen_status cbgen_update_values(cbgen_operator *op, const cbgen_update *update);

/* Another matrix with the same pattern: an operator of its own that shares the kernel, indices and what puts values
 * into place with `op`, and has values of its own: `values`, which are put there as by cbgen_update_values (those in
 * host memory are there on return, or refused where they are split and have no such form), or NULL: those of `op`, once
 * all work on the GPU is done. Nothing is looked up,
 * planned or compiled, so that it takes as long as its values take to be copied; of device memory it takes what they
 * need (device_bytes of cbgen_info, which has 0 seconds and CBGEN_CACHE_OFF for what did not happen). The two are freed
 * in any order; what they share goes with the last one, which may be a copy's copy. cbgen_operator_specialise compiles
 * for each of them alone: do that before copying. CBGEN_CHECK=N does not compare products of copies, nor check-symmetry
 * their values. On success *copy is the caller's; on failure it is NULL, and `op` has the message.
 * CBGEN_ERROR_ARGUMENT when it was not compiled with CBGEN_VALUES_MUTABLE; CBGEN_ERROR_UNSUPPORTED while
 * CBGEN_CHECK=bounds asks for checks; CBGEN_ERROR_MEMORY, CBGEN_ERROR_DEVICE. */
CBGEN_API cbgen_status cbgen_operator_copy(cbgen_operator *op, const cbgen_update *values, cbgen_operator **copy);

/* Waits for the stream, and says whether the values that the operator was compiled with, and those of renewals since
 * the last call, keep the promise of symmetry, and, where values are split, whether those of renewals have that form.
 * CBGEN_ERROR_WRONG, CBGEN_ERROR_LIMIT: they do not. CBGEN_ERROR_ARGUMENT: values are not split, and the operator was
 * not compiled with the option "check-symmetry" at "on", or it was loaded (cbgen_operator_load) or is a copy
 * (cbgen_operator_copy), which have no checks.
 * The check takes 8 bytes of device memory for each pair of entries, or 16 where there are 2^32 entries, and a matrix
 * without duplicates. */
CBGEN_API cbgen_status cbgen_operator_check(cbgen_operator *op, void *stream);

/* What went wrong in the last call that failed with this operator (and took no context). Valid until the next
 * that fails, or the operator is freed. */
CBGEN_API const char *cbgen_operator_message(const cbgen_operator *op);

typedef enum cbgen_cache_result { CBGEN_CACHE_OFF = 0, CBGEN_CACHE_MISS = 1, CBGEN_CACHE_HIT = 2 } cbgen_cache_result;

/* Seconds are wall clock. Those of a stage that did not run are 0. */
typedef struct cbgen_info {
  size_t struct_size; /* sizeof(cbgen_info), set by the caller */
  int64_t rows, cols, nnz; /* of the operator (transposed: as it multiplies); nnz without duplicates */
  cbgen_type matrix_type, vector_type, sum_type; /* stored values; x and y; accumulation */
  cbgen_values values;
  int launches;      /* kernels per product */
  int has_scratch;   /* 1: one stream at a time; see cbgen_multiply */
  int registers;     /* per thread, the most of all kernels */
  int spilled_bytes; /* per thread, likewise */
  int64_t stored_bytes;   /* what a product reads beside x and y */
  int64_t device_bytes;   /* allocated on the device, scratch and what updates need included */
  double bytes_per_nonzero; /* of stored_bytes */
  double predicted_seconds; /* of one product, by the cost model */
  double measured_seconds;  /* by tuning or cbgen_operator_measure; 0: not measured */
  double csr_seconds;       /* predicted for cuSPARSE's CSR product: its bytes at the rate that it reaches */
  double break_even;        /* products after which set-up is repaid against that; infinite when never */
  cbgen_cache_result cache;
  double hash_seconds;     /* of the pattern, for the cache's key */
  double lookup_seconds;   /* finding the cache's entry and reading it, but for what upload_seconds reads */
  double analysis_seconds; /* canonical form, choice of the recipe, and plan */
  double pack_seconds;     /* arrays and slot maps */
  double generate_seconds; /* the text */
  double compile_seconds;  /* NVRTC */
  double tune_seconds;     /* candidates compiled and timed */
  double store_seconds;    /* writing the cache's entry */
  double load_seconds;     /* binary to the GPU, functions found */
  double upload_seconds;   /* arrays to the GPU, from the cache if long; pinned memory, once; values into place */
  double total_seconds;    /* of cbgen_compile or cbgen_operator_load */
  int64_t entries;         /* of the matrix as it was given, duplicates included: what cbgen_update takes */
  cbgen_tier tier;         /* of the kernels that multiply */
  int64_t peak_bytes;      /* of device memory, the most at one time while it was made; what it keeps included */
  int vectors;             /* that one pass over the matrix takes: 1, or of the request, rounded up to a power of 2.
                            * predicted_seconds is the time of all of them then */
  int split;               /* 1: values are split: see cbgen_request */
} cbgen_info;
CBGEN_API cbgen_status cbgen_operator_info(const cbgen_operator *op, cbgen_info *info);

/* The order of an operator's vectors: element i of y is the result of row rows[i] of the matrix as it was given (of the
 * transposed one, if that was asked for), and element j of x belongs to its column columns[j]: as many numbers as it
 * has rows and columns, to host memory. 0, 1, 2, … unless the request asked for another order and that pays. Either may
 * be NULL. New values (cbgen_update) keep the order of the matrix as it was given. */
CBGEN_API cbgen_status cbgen_operator_permutation(const cbgen_operator *op, int32_t *rows, int32_t *columns);

/* Times products with vectors of its own (allocated for the call) and keeps the median in the info. */
CBGEN_API cbgen_status cbgen_operator_measure(cbgen_operator *op, double *seconds);

/* The specialised CUDA text, whatever the tier, NUL-terminated; the plan as one line and as JSON; the key of the
 * specialised kernel, 16 hexadecimal digits, which also stands in its kernels' names ("cbgen_KEY_spmv"; those of a family
 * are "cbgen_family_spmv"): `cbgen cache show KEY` finds its entry by it. They live as long as the operator. Text and
 * JSON may be made by the first call that asks for them, on any thread; "" where memory does not suffice. */
CBGEN_API const char *cbgen_operator_source(const cbgen_operator *op, size_t *length);
CBGEN_API const char *cbgen_operator_plan(const cbgen_operator *op);
CBGEN_API const char *cbgen_operator_plan_json(const cbgen_operator *op);
CBGEN_API const char *cbgen_operator_key(const cbgen_operator *op);

/* The operator as one block of bytes that the application owns: kernel, arrays, values. *length receives the
 * size; with `bytes` NULL nothing else happens, else CBGEN_ERROR_ARGUMENT when `capacity` is too small. Waits
 * for the device. Load gives it back on a GPU of the same architecture or, compiling the text anew, on another
 * that has what the plan needs (else CBGEN_ERROR_LIMIT). CBGEN_ERROR_FORMAT: not such a block, damaged, or with numbers
 * (grids, sizes, types) that are not its plan's. The block carries machine code, which is executed: load only what
 * comes from those you trust. */
CBGEN_API cbgen_status cbgen_operator_save(cbgen_operator *op, void *bytes, size_t capacity, size_t *length);
CBGEN_API cbgen_status cbgen_operator_load(cbgen_context *context, const void *bytes, size_t length,
                                           cbgen_operator **op);

/* ---- solvers: a whole solution of A x = b as one kernel */

/* An operator's product with a method around it: all iterations run in one persistent kernel, or in a CUDA graph that
 * repeats a few kernels, on vectors that are the solver's own, and the host waits for nothing. Nothing is added with
 * atomics, so a solver's results repeat bit for bit on the same GPU. */
typedef struct cbgen_solver cbgen_solver;

typedef enum cbgen_reason {
  CBGEN_REASON_NONE = 0,         /* nothing was solved yet */
  CBGEN_REASON_CONVERGED = 1,    /* the residual is small enough, by the method's recurrence: see true_residual */
  CBGEN_REASON_ITERATIONS = 2,   /* the most iterations are over */
  CBGEN_REASON_BREAKDOWN = 3,    /* the method cannot go on: for "cg", A is not positive definite */
  CBGEN_REASON_NOT_A_NUMBER = 4, /* NaN or infinity: in A, b or x, or by overflow */
  CBGEN_REASON_STOPPED = 5,      /* by the caller's cbgen_progress */
  CBGEN_REASON_PRIMAL_INFEASIBLE = 6, /* a linear program: no x is within all bounds; y proves it */
  CBGEN_REASON_DUAL_INFEASIBLE = 7    /* likewise: its value falls without end, or no x is within bounds; x proves it */
} cbgen_reason;

/* How a solution ended, as it lies in device memory. Norms are Euclidean. */
typedef struct cbgen_outcome {
  int reason; /* cbgen_reason */
  int iterations;
  double residual;      /* the norm of b - A x by the method's recurrence */
  double true_residual; /* computed from the x that was found */
  double value;         /* of "power" the eigenvalue; else 0 */
} cbgen_outcome;

/* A preconditioner of the caller's: puts z = M^-1 r on the stream (vectors in device memory, as long as the matrix has
 * rows, which do not overlap), and returns 0, or else has failed. It is called when a solver is made and when a
 * solution is captured, on a stream under capture (mode thread-local), and what it captures is replayed in every
 * iteration. If that fails, it is called in every iteration, and the host waits for each. It calls no function of its
 * solver. */
typedef int (*cbgen_precondition)(void *user, const void *r, void *z, void *stream);

/* Is told of a solution while it runs: after each iteration, on the thread of cbgen_solve, which waits for it. x is in
 * device memory, as long as the matrix has rows, complete when it is called, and only read; of "gmres" it changes when a
 * round ends, and of "jacobi" it is a sweep ahead of the residual. Not 0: the solution ends there, for
 * CBGEN_REASON_STOPPED. It calls no function of its solver. */
typedef int (*cbgen_progress)(void *user, int iterations, double residual, const void *x);

/* Zeros are the defaults. Pointers are to device memory, and stay the caller's; all are read when a solution runs. */
typedef struct cbgen_solver_options {
  size_t struct_size;         /* sizeof(cbgen_solver_options) */
  double relative_tolerance;  /* it is solved when the residual's norm is at most this times that of b; 0: 1e-8, or 1e-5
                               * with sums of float. With absolute_tolerance given alone: 0 */
  double absolute_tolerance;  /* or at most this */
  int max_iterations;         /* 0: 10 times the rows */
  const void *diagonal;       /* `rows` numbers of the vector type by which residuals are divided (Jacobi's
                               * preconditioner; where one is 0, by 1): cbgen_diagonal. NULL: none */
  cbgen_outcome *outcome;     /* receives the outcome; NULL: memory of the solver's */
  double *history;            /* receives the square of the residual's norm before the first iteration and after each:
                               * max_iterations + 1 numbers; NULL: not wanted */
  int thread_blocks;          /* of the kernel; 0: by the product's size and the GPU. Bits depend on it */
  const char *program_form;   /* "grid": thread blocks on all multiprocessors; "cluster": one cluster of thread blocks
                               * (from sm_90 on, at most 16), for small systems; "block": one thread block; with
                               * "+steps" behind it: vectors are made before a product, never in it; and with
                               * "+resident": vectors lie in shared memory for the whole solution. In a cluster and a
                               * block all do, of "cg", "bicgstab" and "minres", beside products whose rows are
                               * committed once (else CBGEN_ERROR_UNSUPPORTED) and if they find room
                               * (CBGEN_ERROR_LIMIT); in a grid, as far as there is room, those of which each thread
                               * reads its own rows alone, beside products without shared memory of their own
                               * (CBGEN_ERROR_UNSUPPORTED). "+pipelined", of "cg" with `diagonal` or without: one
                               * meeting in an iteration in the place of two. "+matrix", of a grid: the matrix lies in
                               * shared memory, too, beside products as "+resident" needs them (else
                               * CBGEN_ERROR_UNSUPPORTED, and CBGEN_ERROR_LIMIT if an equal part of it finds no room in
                               * a multiprocessor). "graph":
                               * several kernels around the operator's own products, repeated by a CUDA graph. NULL:
                               * what is predicted to be the fastest, "graph" where that cannot be made (the plan's launches
                               * differ in size, or there is no NVRTC), or "grid" for a number of thread blocks. Read
                               * when the solver is made. Bits depend on it */
  int restart;                /* "gmres": iterations until it begins anew, and one less than the vectors that it keeps: 1
                               * to 64; 0: 30 */
  double weight;              /* "jacobi": of each correction; 0: 2/3 */
  double damping;             /* "pagerank": how often a link is followed, below 1; 0: 0.85 */
  double lowest, highest;     /* "chebyshev": between these are the eigenvalues of A, divided by the diagonal where there
                               * is one. `highest` 0: found by 20 steps of the power method; `lowest` 0: found on the
                               * way, from highest / 30 down */
  const void *blocks;         /* "cg", "cg-mixed" and "bicgstab": inverses of blocks along the diagonal, by which residuals are
                               * multiplied: cbgen_block_diagonal; then `diagonal` is NULL. NULL: none */
  int block_size;             /* of `blocks`: rows of each, 2 to 16; else 0 */
  cbgen_precondition precondition; /* "cg", "cg-mixed" and "bicgstab", with neither `diagonal` nor `blocks`: a preconditioner of the
                               * caller's; NULL: none */
  void *precondition_user;    /* its first argument */
  cbgen_progress progress;    /* is told of each iteration. Then the host drives the kernels of form "graph", with the
                               * same bits, and waits for each iteration: form "host". NULL: nobody is */
  void *progress_user;        /* its first argument */
} cbgen_solver_options;

/* The methods:
 *
 *   cg         A symmetric and positive definite (Hestenes and Stiefel)
 *   cg-mixed   the same for operators with split values: products with heads, and now and then the residual anew from
 *              whole values, which ends it (reliable updates: Sleijpen and van der Vorst). Its diagonal makes up for
 *              what rows of heads lack of the sums of whole ones. "cluster" and "block" have no "+resident"
 *   minres     A symmetric (Paige and Saunders); of the diagonal the sizes count
 *   bicgstab   any A (van der Vorst); two products an iteration
 *   gmres      any A (Saad and Schultz), begun anew every `restart` iterations: classical Gram-Schmidt, twice
 *   chebyshev  A symmetric and positive definite, eigenvalues between `lowest` and `highest`; no sum is waited for
 *   jacobi     sweeps x += weight D^-1 (b - A x) with D the diagonal; without one Richardson's iteration
 *   power      A x = value x for the eigenvalue of largest size, which the outcome has: x from any first guess but 0, b
 *              is not read (NULL), the residual is A x - value x, and relative to the eigenvalue. Takes no diagonal
 *   pagerank   x = damping A x + (what is missing to sum(x) = 1) b / sum(b): A's entry (i, j) is the share of page j's
 *              rank that goes to page i, so that columns have the sum 1 or, of pages without links, none; or A has ones
 *              (or weights), and the diagonal the sums of its columns. b: where jumps go, not below 0. x: any first
 *              guess, not below 0. The residual is a bound of the sum of what an iteration changes, at most twice that,
 *              and not relative to b; the true residual is that sum
 *
 * "residual" in the others is b - A x, and they end when its norm is small enough. Preconditioners stand on the right
 * of bicgstab and gmres.
 * `options` NULL: all its members zero. The kernel is compiled by NVRTC, or found in the operator's cache. On success
 * *solver is the caller's; on failure it is NULL, and the operator has the message. The operator may be freed before
 * the solver; new values of any of its handles count for later solutions.
 * CBGEN_ERROR_ARGUMENT: the operator is not square, has an epilogue, or another semiring than plus-times; no such
 * method. CBGEN_ERROR_UNSUPPORTED: vectors of 16 bits; a plan whose launches differ in size (recipes sell, merge, dia
 * and blocks have none such); a driver without cooperative launches. CBGEN_ERROR_LIMIT: no room for so many thread
 * blocks. CBGEN_ERROR_MISSING: no NVRTC. CBGEN_ERROR_MEMORY, CBGEN_ERROR_COMPILE, CBGEN_ERROR_DEVICE. */
CBGEN_API cbgen_status cbgen_solver_create(cbgen_operator *op, const char *method, const cbgen_solver_options *options,
                                           cbgen_solver **solver);

/* Another solver with the same kernel and vectors of its own, for solutions on another stream at the same time:
 * nothing is compiled. `options` NULL: those of the solver, but for `outcome` and `history`, which are NULL; else all
 * of them anew, of which `thread_blocks`, `restart` and whether there is a diagonal must be the solver's. On failure
 * the solver has the message. */
CBGEN_API cbgen_status cbgen_solver_clone(cbgen_solver *solver, const cbgen_solver_options *options,
                                          cbgen_solver **clone);
CBGEN_API void cbgen_solver_free(cbgen_solver *solver); /* NULL is accepted; no solution of its may be running */

/* Puts a solution of A x = b on the stream: one kernel launch (form "graph": one, and one of a graph), no allocation, no
 * synchronisation; it may be captured in a CUDA graph. One that has captured a solution of form "graph" has a
 * conditional node, and CUDA's limits for these: it cannot be a child of another graph, nor be cloned, and all that it
 * does in the loop is on one GPU. Such a solver stays until its graphs are gone. Form "host" waits for each iteration,
 * and cannot be captured (CBGEN_ERROR_ARGUMENT). b and x: `rows` elements of the vector type; x holds the first guess
 * and receives what was found. A solver works on one solution at a time: those on other streams take a clone. */
CBGEN_API cbgen_status cbgen_solve(cbgen_solver *solver, const void *b, void *x, void *stream);

/* Waits for the stream of the last solution and copies its outcome. Whoever launches a graph that has captured a
 * solution waits for it before. */
CBGEN_API cbgen_status cbgen_solver_outcome(cbgen_solver *solver, cbgen_outcome *outcome);

/* How it runs: "grid", "cluster" or "block", each with the words behind it that were asked for or chosen
 * (cbgen_solver_options.program_form: "grid+resident+pipelined"); "graph", or "host" for a solver of several kernels
 * that the host repeats, as the driver is older than CUDA 12.4, its preconditioner cannot be captured, or somebody is
 * told of its progress. "" for NULL. */
CBGEN_API const char *cbgen_solver_form(const cbgen_solver *solver);

/* What went wrong in the last call that failed with this solver. */
CBGEN_API const char *cbgen_solver_message(const cbgen_solver *solver);

/* The CUDA text of the kernel, NUL-terminated; *length (if not NULL) receives its bytes without the NUL. It lives as
 * long as the solver. */
CBGEN_API const char *cbgen_solver_source(const cbgen_solver *solver, size_t *length);

/* ---- linear programs */

/* Minimise cost . x where row_lower <= A x <= row_upper and lower <= x <= upper, by restarted primal-dual hybrid
 * gradient: the iteration is that of Chambolle and Pock (2011), anchored, reflected and begun anew after Lu and Yang
 * (Restarted Halpern PDHG, 2024), with the weights and ends of PDLP (Applegate and others, 2021). It takes an operator
 * of A and one of its transpose, runs in a CUDA graph that repeats their products and two kernels, and the host waits
 * for nothing. Nothing is added with atomics: results repeat bit for bit on the same GPU. */
typedef struct cbgen_lp cbgen_lp;

/* How a solution ended, as it lies in device memory. Residuals are Euclidean norms, computed from the x and y that the
 * caller receives: of what A x lacks to its bounds, and of what reduced costs r = cost - A^T y have where x has no
 * bound to take them. The dual's value is what y and r are worth against the bounds. */
typedef struct cbgen_lp_result {
  int reason; /* cbgen_reason; CBGEN_REASON_BREAKDOWN: a lower bound is above its upper one */
  int iterations;
  double primal_residual, dual_residual;
  double primal_value, dual_value;
} cbgen_lp_result;

/* Zeros are the defaults. Pointers are to device memory, and stay the caller's; all are read when a solution runs. */
typedef struct cbgen_lp_options {
  size_t struct_size;        /* sizeof(cbgen_lp_options) */
  double relative_tolerance; /* it is solved when primal_residual <= absolute + relative * |finite bounds of rows|,
                              * dual_residual <= absolute + relative * |cost|, and the two values are no further apart
                              * than absolute + relative * (|primal_value| + |dual_value|) */
  double absolute_tolerance; /* both 0: both are 1e-6, or 1e-4 with sums of float */
  int max_iterations;        /* 0: 100000. The end is looked for in every 64th, and in the last. At most 2^24 with
                              * sums of float */
  double norm;               /* the largest singular value of A, with its scales; 0: found by 24 steps of the power
                              * method. Either is enlarged where iterations show that it is larger, unless it is so much
                              * larger that numbers overflow before */
  double weight;             /* of the primal against the dual in a step's lengths, sqrt(sigma / tau); 0: found */
  const void *row_scales;    /* `rows` numbers of the vector type above 0, by which the method multiplies A's rows: */
  const void *column_scales; /* cbgen_lp_scales; likewise `cols` and columns. Both or none; NULL: 1 */
  cbgen_lp_result *result;   /* receives the result; NULL: memory of the solver's */
  double certificate_tolerance; /* of a certificate that there is no solution, what it lacks against what it is worth:
                              * cbgen_lp_solve; 0: 1e-8, or 1e-3 with sums of float; below 0: none is looked for */
  const cbgen_csr *matrix;   /* in host memory, A as the operators have it, read by cbgen_lp_create alone: where it
                              * finds room in shared memory, twice (on an H200 up to about 1 M nonzeros), iterations
                              * between two checks are one kernel. NULL: they are products of the operators. Operators
                              * with mutable values, or with vectors, sums and a matrix of several types, decline it */
} cbgen_lp_options;

/* A linear program beside its matrix: vectors of the operator's vector type in device memory. Bounds may be infinite;
 * an equation has two equal ones. */
typedef struct cbgen_lp_problem {
  size_t struct_size;              /* sizeof(cbgen_lp_problem) */
  const void *cost;                /* `cols` numbers; NULL: 0, any x within the bounds is wanted */
  const void *lower;               /* likewise; NULL: 0 */
  const void *upper;               /* likewise; NULL: infinity */
  const void *row_lower;           /* `rows` numbers; NULL: minus infinity */
  const void *row_upper;           /* likewise; NULL: infinity */
} cbgen_lp_problem;

/* `a`: an operator of A, rows by cols; `transposed`: one of its transpose (cbgen_request, `transpose`), of the same
 * context, with the same types of vectors and sums, f64 or f32. `options` NULL: all its members zero. The kernels come
 * with the library, or are compiled by NVRTC. On success *lp is the caller's; on failure it is NULL, and `a` has the
 * message. The operators may be freed before it; new values of both count for later solutions.
 * CBGEN_ERROR_ARGUMENT: operators that do not fit, with an epilogue, another semiring than plus-times or form add, a
 * matrix without rows or columns; options out of range. CBGEN_ERROR_UNSUPPORTED: vectors of 16 bits.
 * CBGEN_ERROR_MISSING: no NVRTC; CBGEN_ERROR_MEMORY, CBGEN_ERROR_COMPILE, CBGEN_ERROR_DEVICE. */
CBGEN_API cbgen_status cbgen_lp_create(cbgen_operator *a, cbgen_operator *transposed, const cbgen_lp_options *options,
                                       cbgen_lp **lp);

/* Another solver with the same kernels and vectors of its own, for solutions on another stream at the same time:
 * nothing is compiled. `options` NULL: those of the solver, but for `result`, which is NULL; else all of them anew, of
 * which whether there are scales must be the solver's. On failure *clone is NULL, and the solver has the message. */
CBGEN_API cbgen_status cbgen_lp_clone(cbgen_lp *lp, const cbgen_lp_options *options, cbgen_lp **clone);
CBGEN_API void cbgen_lp_free(cbgen_lp *lp); /* NULL is accepted; no solution of its may be running */

/* Puts a solution on the stream, as cbgen_solve does in form "graph", with its limits. x (`cols` numbers) and y (`rows`:
 * the multipliers of the rows, above 0 where a lower bound holds them, below where an upper one does) hold the first
 * guess and receive what was found. The problem's vectors are copied first.
 *
 * Where there is no solution, steps of the method converge to a direction that proves it (Applegate and others,
 * "Infeasibility detection with primal-dual hybrid gradient for large-scale linear programming", 2024), which is looked
 * for whenever the end is:
 *
 *   CBGEN_REASON_PRIMAL_INFEASIBLE   y receives multipliers worth 1 against the bounds of rows and, with r = -A^T y,
 *                                    of columns, though they cost nothing, up to entries for which there is no bound:
 *                                    those have a norm of at most certificate_tolerance. Of no x within all bounds have
 *                                    x and A x together a norm below the inverse of that
 *   CBGEN_REASON_DUAL_INFEASIBLE     x receives a direction of cost -1 that no bound of rows or columns ends, up to
 *                                    parts of a norm of at most certificate_tolerance: there is no solution, or no best
 *
 * The other vector, residuals and values are then those of the method, and mean little. What has neither a solution nor
 * a certificate that shows in time ends with its iterations used up. */
CBGEN_API cbgen_status cbgen_lp_solve(cbgen_lp *lp, const cbgen_lp_problem *problem, void *x, void *y, void *stream);

/* Waits for the stream of the last solution and copies its result. */
CBGEN_API cbgen_status cbgen_lp_outcome(cbgen_lp *lp, cbgen_lp_result *result);

/* "graph", or "host" where the driver is older than CUDA 12.4; with "+matrix" behind it where iterations have the matrix in
 * shared memory. "" for NULL. */
CBGEN_API const char *cbgen_lp_form(const cbgen_lp *lp);

/* What went wrong in the last call that failed with this solver. */
CBGEN_API const char *cbgen_lp_message(const cbgen_lp *lp);

/* Scales of A for cbgen_lp_options: 10 passes of Ruiz (2001: each row's and column's largest entry comes near 1), and
 * one of Pock and Chambolle (2011: by the sums of sizes), after PDLP. To `rows` and `cols` numbers in device memory, of
 * the types of cbgen_diagonal. A matrix in device memory comes to the host for that. Waits until they are there. */
CBGEN_API cbgen_status cbgen_lp_scales(cbgen_context *context, const cbgen_csr *matrix, void *row_scales,
                                       void *column_scales);

/* ---- batches: many independent small systems at once */

/* Solutions of systems whose matrices have their nonzeros in the same places, and other values: each is solved by one
 * thread block, which takes the next when it is done. */
typedef struct cbgen_batch cbgen_batch;

/* As in cbgen_solver_options, but for all systems: arrays hold one system's numbers behind the other's. */
typedef struct cbgen_batch_options {
  size_t struct_size;        /* sizeof(cbgen_batch_options) */
  int64_t systems;           /* how many, at least 1 */
  double relative_tolerance; /* of each system by itself; 0: 1e-8, or 1e-5 for float */
  double absolute_tolerance;
  int max_iterations;        /* 0: 10 times the rows */
  const void *diagonals;     /* systems * rows numbers for Jacobi's preconditioner; NULL: none */
  cbgen_outcome *outcomes;   /* receives `systems` outcomes; NULL: memory of the batch's */
  const char *program_form;  /* "block": vectors lie in device memory; "block+resident": all but b and x in shared memory,
                              * for which they must be small enough (CBGEN_ERROR_LIMIT). NULL: that where several thread
                              * blocks of a multiprocessor find room, else "block", with the same bits. Read when the
                              * batch is made */
} cbgen_batch_options;

/* "cg" or "bicgstab" for a square pattern: rows and columns of `pattern`, in host or device memory, whose values are
 * not read. Values, vectors and sums are of the context's type, f64 or f32. The kernel is compiled by NVRTC, or found
 * in the context's cache. On success *batch is the caller's; on failure it is NULL, and the context has the message.
 * CBGEN_ERROR_ARGUMENT; CBGEN_ERROR_UNSUPPORTED: another type; CBGEN_ERROR_LIMIT: 2^31 nonzeros or more;
 * CBGEN_ERROR_MISSING: no NVRTC; CBGEN_ERROR_MEMORY, CBGEN_ERROR_COMPILE, CBGEN_ERROR_DEVICE. */
CBGEN_API cbgen_status cbgen_batch_create(cbgen_context *context, const cbgen_csr *pattern, const char *method,
                                          const cbgen_batch_options *options, cbgen_batch **batch);
CBGEN_API void cbgen_batch_free(cbgen_batch *batch); /* NULL is accepted; no solution of its may be running */

/* Puts the solutions of all systems on the stream: one kernel launch, no allocation, no synchronisation. `values`:
 * systems * nonzeros numbers, in the pattern's order; `b` and `x`: systems * rows; x holds the first guesses and
 * receives what was found. All in device memory. One at a time. A system that fails leaves others as they are. */
CBGEN_API cbgen_status cbgen_solve_batch(cbgen_batch *batch, const void *values, const void *b, void *x, void *stream);

/* Waits for the stream of the last solutions and copies their outcomes, as many as there are systems. */
CBGEN_API cbgen_status cbgen_batch_outcomes(cbgen_batch *batch, cbgen_outcome *outcomes);

/* What went wrong in the last call that failed with this batch. */
CBGEN_API const char *cbgen_batch_message(const cbgen_batch *batch);

/* ---- generation: the text alone, without a GPU */

/* The result of a generation. */
typedef struct cbgen_kernel cbgen_kernel;

/* Analyses the matrix and writes its kernel. On success *kernel is the caller's (cbgen_kernel_free); on
 * failure it is NULL. The same matrix, options and version give the same bytes. CBGEN_ERROR_ARGUMENT: the
 * view is inconsistent (the message says where); CBGEN_ERROR_LIMIT, CBGEN_ERROR_MEMORY. */
CBGEN_API cbgen_status cbgen_generate(cbgen_context *context, const cbgen_csr *matrix, cbgen_kernel **kernel);
CBGEN_API cbgen_status cbgen_generate_matrix(cbgen_context *context, const cbgen_matrix *matrix,
                                             cbgen_kernel **kernel);
CBGEN_API void cbgen_kernel_free(cbgen_kernel *kernel); /* NULL is accepted */

/* All of these point into the kernel and live as long as it does. Of NULL they tell nothing: "", NULL, 0. */

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
