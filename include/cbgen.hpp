// SPDX-License-Identifier: Apache-2.0
/* cbgen for C++17: cbgen.h with owners, types and exceptions. Nothing to compile or link but libcbgen.
 *
 *   cbgen::context context;
 *   context.set("tune", "measure");
 *   cbgen::linear_operator<double> A(context, cbgen::csr(rows, cols, row_ptr, col_idx, values));
 *   A.multiply(x, y, stream);                            y = A x; x and y in device memory
 *
 * What a function does, permits and costs stands at its namesake in cbgen.h; here stands what differs.
 *
 * Errors are exceptions of type cbgen::error, with the status and the library's message. A constructor that throws
 * leaves nothing behind. For code through which no exception may pass, try_multiply and try_update_values return the
 * status; all else belongs to set-up. Code without exceptions at all (-fno-exceptions) uses cbgen.h.
 *
 * Ownership. Contexts, operators and kernels own what they stand for: they can be moved, not copied, and clone() makes
 * a second handle on an operator. A moved-from object can only be assigned to and destroyed. native() lends the handle.
 *
 * Types. linear_operator<T> multiplies vectors of T, and its constructor refuses a matrix and options that give vectors
 * of another type. Types that CUDA or others define take one line:
 *
 *   template <> struct cbgen::type_of<__half> : cbgen::is_type<CBGEN_F16> {};
 */
#ifndef CBGEN_HPP
#define CBGEN_HPP

#include "cbgen.h"

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace cbgen {

/* ---- errors */

class error : public std::runtime_error {
public:
  error(cbgen_status status, const std::string &message) : std::runtime_error(message), status_(status) {}
  cbgen_status status() const noexcept { return status_; }

private:
  cbgen_status status_;
};

/* ---- types of numbers */

template <cbgen_type type> struct is_type {
  static constexpr cbgen_type value = type;
};

/* type_of<T>::value is the cbgen_type of T. Of other types there is none: the program does not compile. */
template <class T> struct type_of;
template <> struct type_of<double> : is_type<CBGEN_F64> {};
template <> struct type_of<float> : is_type<CBGEN_F32> {};

namespace detail {

inline const char *name_of(cbgen_type type) noexcept {
  static const char *const names[] = {"f64", "f32", "f16", "bf16"};
  return static_cast<unsigned>(type) < 4 ? names[type] : "unknown";
}

/* Of an integer type that indices may have. */
template <class I> constexpr int bits_of() {
  static_assert(std::is_integral<I>::value && std::is_signed<I>::value && (sizeof(I) == 4 || sizeof(I) == 8),
                "row pointers and indices are signed integers of 32 or 64 bits");
  return static_cast<int>(8 * sizeof(I));
}

/* The handle that a unique_ptr owns is freed by this function. */
template <auto release> struct releaser {
  template <class T> void operator()(T *handle) const noexcept { release(handle); }
};

} // namespace detail

/* ---- matrices: a view, which owns nothing but its name */

class matrix {
public:
  /* What is not said by the functions below: any member may be set. */
  cbgen_matrix view{};

  matrix() noexcept { view.struct_size = sizeof view; }

  /* The arrays lie in device memory, and are ready when the stream's work is done. */
  matrix on_device(void *stream = nullptr) && {
    view.memory = CBGEN_DEVICE;
    view.stream = stream;
    return std::move(*this);
  }
  /* Indices and pointers start at 1. */
  matrix from_one() && {
    view.index_base = 1;
    return std::move(*this);
  }
  matrix named(std::string name) && {
    name_ = std::move(name);
    return std::move(*this);
  }

  /* For the library: as long as this matrix stays as it is. */
  cbgen_matrix native() const {
    cbgen_matrix result = view;
    if (!result.name && !name_.empty()) result.name = name_.c_str();
    return result;
  }

private:
  std::string name_;
};

namespace detail {

template <class P, class I, class V>
matrix matrix_of(cbgen_format format, int64_t rows, int64_t cols, int64_t nnz, const P *pointers,
                 const I *indices, const V *values) {
  matrix result;
  result.view.format = format;
  result.view.rows = rows;
  result.view.cols = cols;
  result.view.nnz = nnz;
  result.view.pointers = pointers;
  result.view.indices = indices;
  result.view.values = values;
  result.view.pointer_bits = bits_of<P>();
  result.view.index_bits = bits_of<I>();
  result.view.value_type = type_of<V>::value;
  return result;
}

} // namespace detail

/* Matrices in host memory with indices from 0, until the functions above say otherwise. V is the type of the values
 * also where `values` is nullptr (all are 1): csr<double>(rows, …, nullptr). */
template <class V, class P, class I>
matrix csr(int64_t rows, int64_t cols, int64_t nnz, const P *row_ptr, const I *col_idx, const V *values) {
  return detail::matrix_of(CBGEN_CSR, rows, cols, nnz, row_ptr, col_idx, values);
}
template <class V, class P, class I>
matrix csc(int64_t rows, int64_t cols, int64_t nnz, const P *col_ptr, const I *row_idx, const V *values) {
  return detail::matrix_of(CBGEN_CSC, rows, cols, nnz, col_ptr, row_idx, values);
}
template <class V, class P, class I>
matrix coo(int64_t rows, int64_t cols, int64_t nnz, const P *row_idx, const I *col_idx, const V *values) {
  return detail::matrix_of(CBGEN_COO, rows, cols, nnz, row_idx, col_idx, values);
}
/* Blocks of block_rows × block_cols, row by row in each; nnz counts blocks, rows and cols count numbers. */
template <class V, class P, class I>
matrix bsr(int64_t rows, int64_t cols, int64_t nnz, int block_rows, int block_cols, const P *row_ptr,
           const I *col_idx, const V *values) {
  matrix result = detail::matrix_of(CBGEN_BSR, rows, cols, nnz, row_ptr, col_idx, values);
  result.view.block_rows = block_rows;
  result.view.block_cols = block_cols;
  return result;
}

/* The same from arrays that know their lengths (std::vector and its like): rows and nonzeros are theirs. Throws
 * error(CBGEN_ERROR_ARGUMENT) when these lengths contradict each other. The arrays are the caller's, and stay. */
template <class P, class I, class V>
matrix csr(int64_t cols, const std::vector<P> &row_ptr, const std::vector<I> &col_idx, const std::vector<V> &values) {
  if (row_ptr.empty())
    throw error(CBGEN_ERROR_ARGUMENT, "'row_ptr' is empty: it has an entry more than the matrix has rows");
  if (values.size() != col_idx.size())
    throw error(CBGEN_ERROR_ARGUMENT, "there are " + std::to_string(col_idx.size()) + " column indices and " +
                                          std::to_string(values.size()) + " values");
  return csr(static_cast<int64_t>(row_ptr.size()) - 1, cols, static_cast<int64_t>(col_idx.size()), row_ptr.data(),
             col_idx.data(), values.data());
}

/* ---- what is asked for */

struct request : cbgen_request {
  request() noexcept : cbgen_request{} { struct_size = sizeof(cbgen_request); }
  explicit request(cbgen_values kind, int64_t products = 0) noexcept : request() {
    values = kind;
    expected_products = products;
  }
};

/* ---- contexts */

class context {
public:
  context() : log_(std::make_unique<log>()) {
    cbgen_context *made = nullptr;
    const cbgen_status status = cbgen_context_create(&made);
    if (status == CBGEN_ERROR_MEMORY) throw std::bad_alloc();
    if (status) throw error(status, std::string("a context cannot be made: ") + cbgen_status_name(status));
    native_.reset(made);
  }

  context &set(const std::string &name, const std::string &value) {
    check(cbgen_set(native(), name.c_str(), value.c_str()));
    return *this;
  }

  /* An exception of this function goes on when the call that it was told about ends, and that call's result is lost. An
   * empty function: no log. It may refer to what lives as long as this context. */
  context &set_log(std::function<void(std::string_view)> told) {
    log_->told = std::move(told);
    check(cbgen_set_log(native(), log_->told ? &log::tell : nullptr, log_.get()));
    return *this;
  }

  /* The functions work until the context and the last of its operators are gone, and throw nothing. */
  context &set_allocator(cbgen_allocator allocator) {
    allocator.struct_size = sizeof allocator;
    check(cbgen_set_allocator(native(), &allocator));
    return *this;
  }

  cbgen_context *native() const noexcept { return native_.get(); }

  /* Throws what the status of a call with this context says, or what its log function threw. */
  void check(cbgen_status status) const {
    if (log_->thrown) std::rethrow_exception(std::exchange(log_->thrown, nullptr));
    if (status) throw error(status, cbgen_message(native()));
  }

private:
  struct log {
    std::function<void(std::string_view)> told;
    std::exception_ptr thrown;

    static void tell(void *user, const char *line) noexcept {
      log *const self = static_cast<log *>(user);
      if (self->thrown) return;
      try {
        self->told(line);
      } catch (...) {
        self->thrown = std::current_exception();
      }
    }
  };

  std::unique_ptr<log> log_; /* has an address of its own, which moving does not change */
  std::unique_ptr<cbgen_context, detail::releaser<cbgen_context_destroy>> native_;
};

/* ---- operators */

template <class T> class linear_operator {
public:
  using value_type = T;

  linear_operator(context &in, const matrix &given, const request &asked = {}) {
    const cbgen_matrix view = given.native();
    cbgen_operator *made = nullptr;
    const cbgen_status status = cbgen_compile_matrix(in.native(), &view, &asked, &made);
    native_.reset(made);
    in.check(status);
    check_type();
  }

  /* From bytes that save() gave: load only what comes from those whose programs you would run. */
  linear_operator(context &in, const std::vector<std::byte> &saved) {
    cbgen_operator *made = nullptr;
    const cbgen_status status = cbgen_operator_load(in.native(), saved.data(), saved.size(), &made);
    native_.reset(made);
    in.check(status);
    check_type();
  }

  /* y = A x, and y = alpha A x + beta y. */
  void multiply(const T *x, T *y, void *stream = nullptr) { multiply(1, x, 0, y, stream); }
  void multiply(double alpha, const T *x, double beta, T *y, void *stream = nullptr) {
    check(try_multiply(alpha, x, beta, y, stream));
  }
  cbgen_status try_multiply(double alpha, const T *x, double beta, T *y, void *stream = nullptr) noexcept {
    cbgen_product product{};
    product.struct_size = sizeof product;
    product.alpha = alpha;
    product.beta = beta;
    product.x = x;
    product.y = y;
    product.stream = stream;
    return cbgen_multiply(native(), &product);
  }

  /* Y = A X, and Y = alpha A X + beta Y, for vectors that lie densely in this order. */
  void multiply_many(int vectors, cbgen_order order, const T *x, T *y, void *stream = nullptr) {
    multiply_many(vectors, order, 1, x, 0, y, stream);
  }
  void multiply_many(int vectors, cbgen_order order, double alpha, const T *x, double beta, T *y,
                     void *stream = nullptr) {
    cbgen_products products{};
    products.struct_size = sizeof products;
    products.vectors = vectors;
    products.order = order;
    products.alpha = alpha;
    products.beta = beta;
    products.x = x;
    products.y = y;
    products.stream = stream;
    check(cbgen_multiply_many(native(), &products));
  }

  /* As many values as the matrix had entries (info().entries). */
  template <class V> void update_values(const V *values, cbgen_memory memory, void *stream = nullptr) {
    check(try_update_values(values, memory, stream));
  }
  template <class V>
  cbgen_status try_update_values(const V *values, cbgen_memory memory, void *stream = nullptr) noexcept {
    const cbgen_update update = update_of(values, memory, stream);
    return cbgen_update_values(native(), &update);
  }

  /* Waits for the stream; throws when values break a promise of symmetry, which the option "check-symmetry" looks at. */
  void check_symmetry(void *stream = nullptr) { check(cbgen_operator_check(native(), stream)); }

  linear_operator clone() const {
    cbgen_operator *made = nullptr;
    check(cbgen_operator_clone(native(), &made));
    return linear_operator(made);
  }

  /* Another matrix of the same pattern, with this one's values or its own: nothing is looked up or compiled. */
  linear_operator copy() const {
    cbgen_operator *made = nullptr;
    check(cbgen_operator_copy(native(), nullptr, &made));
    return linear_operator(made);
  }
  template <class V> linear_operator copy(const V *values, cbgen_memory memory, void *stream = nullptr) const {
    const cbgen_update update = update_of(values, memory, stream);
    cbgen_operator *made = nullptr;
    check(cbgen_operator_copy(native(), &update, &made));
    return linear_operator(made);
  }
  void unbind() noexcept { cbgen_operator_unbind(native()); }
  void specialise() { check(cbgen_operator_specialise(native())); }

  /* Seconds of one product. */
  double measure() {
    double seconds = 0;
    check(cbgen_operator_measure(native(), &seconds));
    return seconds;
  }

  std::vector<std::byte> save() const {
    std::size_t length = 0;
    check(cbgen_operator_save(native(), nullptr, 0, &length));
    std::vector<std::byte> bytes(length);
    check(cbgen_operator_save(native(), bytes.data(), bytes.size(), &length));
    bytes.resize(length);
    return bytes;
  }

  cbgen_info info() const {
    cbgen_info info{};
    info.struct_size = sizeof info;
    check(cbgen_operator_info(native(), &info));
    return info;
  }
  int64_t rows() const { return info().rows; }
  int64_t cols() const { return info().cols; }

  /* For each entry of y, and of x, the row and the column of the matrix as it was given. */
  std::pair<std::vector<int32_t>, std::vector<int32_t>> permutation() const {
    const cbgen_info shape = info();
    std::vector<int32_t> rows(static_cast<std::size_t>(shape.rows)), columns(static_cast<std::size_t>(shape.cols));
    check(cbgen_operator_permutation(native(), rows.data(), columns.data()));
    return {std::move(rows), std::move(columns)};
  }

  /* They live as long as the operator. */
  std::string_view source() const {
    std::size_t length = 0;
    const char *const text = cbgen_operator_source(native(), &length);
    return text ? std::string_view(text, length) : std::string_view();
  }
  std::string_view plan() const { return cbgen_operator_plan(native()); }
  std::string_view plan_json() const { return cbgen_operator_plan_json(native()); }
  std::string_view key() const { return cbgen_operator_key(native()); }

  cbgen_operator *native() const noexcept { return native_.get(); }

private:
  explicit linear_operator(cbgen_operator *made) noexcept : native_(made) {}

  template <class V> static cbgen_update update_of(const V *values, cbgen_memory memory, void *stream) noexcept {
    cbgen_update update{};
    update.struct_size = sizeof update;
    update.values = values;
    update.value_type = type_of<V>::value;
    update.memory = memory;
    update.stream = stream;
    return update;
  }

  void check(cbgen_status status) const {
    if (status) throw error(status, cbgen_operator_message(native()));
  }

  void check_type() const {
    const cbgen_type type = info().vector_type;
    if (type != type_of<T>::value)
      throw error(CBGEN_ERROR_ARGUMENT, std::string("x and y of this operator are ") + detail::name_of(type) +
                                            ", not " + detail::name_of(type_of<T>::value));
  }

  std::unique_ptr<cbgen_operator, detail::releaser<cbgen_operator_free>> native_;
};

/* ---- generation: the text alone, without a GPU */

class kernel {
public:
  kernel(context &in, const matrix &given) {
    const cbgen_matrix view = given.native();
    cbgen_kernel *made = nullptr;
    const cbgen_status status = cbgen_generate_matrix(in.native(), &view, &made);
    native_.reset(made);
    in.check(status);
  }

  /* All of these point into the kernel and live as long as it does. */
  std::string_view source() const {
    std::size_t length = 0;
    const char *const text = cbgen_kernel_source(native(), &length);
    return text ? std::string_view(text, length) : std::string_view();
  }
  std::pair<const std::byte *, std::size_t> data() const {
    std::size_t length = 0;
    const void *const bytes = cbgen_kernel_data(native(), &length);
    return {static_cast<const std::byte *>(bytes), length};
  }
  bool is_embedded() const noexcept { return cbgen_kernel_embedded(native()) != 0; }
  std::string_view symbol() const { return cbgen_kernel_symbol(native()); }
  std::string_view plan() const { return cbgen_kernel_plan(native()); }
  std::string_view plan_json() const { return cbgen_kernel_plan_json(native()); }
  int64_t stored_bytes() const noexcept { return cbgen_kernel_stored_bytes(native()); }

  cbgen_kernel *native() const noexcept { return native_.get(); }

private:
  std::unique_ptr<cbgen_kernel, detail::releaser<cbgen_kernel_free>> native_;
};

} // namespace cbgen

#endif
