// SPDX-License-Identifier: Apache-2.0
/* cbgen.hpp: products of every type and form, errors as exceptions, ownership, the log. On the fake CUDA. */
#include <cbgen.hpp>

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

int failures;

void expect(bool holds, const std::string &what) {
  if (holds) return;
  std::fprintf(stderr, "FAILED: %s\n", what.c_str());
  failures++;
}

/* The error that `action` throws; a status of 0 when it throws none. */
template <class F> cbgen::error thrown_by(F action) {
  try {
    action();
  } catch (const cbgen::error &failure) {
    return failure;
  }
  return cbgen::error(CBGEN_OK, "nothing was thrown");
}

template <class F> void expect_error(F action, cbgen_status status, const std::string &words) {
  const cbgen::error failure = thrown_by(action);
  expect(failure.status() == status && std::string(failure.what()).find(words) != std::string::npos,
         "expected status " + std::to_string(status) + " and '" + words + "', not " + std::to_string(failure.status()) +
             " and '" + failure.what() + "'");
}

template <class T> struct device_array {
  T *at = nullptr;
  explicit device_array(const std::vector<T> &values) {
    void *memory = nullptr;
    if (cudaMalloc(&memory, values.size() * sizeof(T) + 1)) std::abort();
    at = static_cast<T *>(memory);
    if (cudaMemcpy(at, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice)) std::abort();
  }
  std::vector<T> read(std::size_t count) const {
    std::vector<T> values(count);
    if (cudaMemcpy(values.data(), at, count * sizeof(T), cudaMemcpyDeviceToHost)) std::abort();
    return values;
  }
  ~device_array() { cudaFree(at); }
  device_array(const device_array &) = delete;
  device_array &operator=(const device_array &) = delete;
};

/* 4 × 3:  2 . 1 / . 3 . / . . . / 4 . 5, whose products with integers are exact in every type */
const std::vector<int> row_ptr{0, 2, 3, 3, 5}, col_idx{0, 2, 1, 0, 2};
const std::vector<double> values{2, 1, 3, 4, 5};
const std::vector<double> x{1, 2, 3}, product{5, 6, 0, 19};

template <class T> std::vector<T> as(const std::vector<double> &numbers) {
  return std::vector<T>(numbers.begin(), numbers.end());
}

template <class T>
void expect_product(cbgen::linear_operator<T> &A, const std::vector<double> &expected, const char *what) {
  const device_array<T> x_there(as<T>(x)), y_there(std::vector<T>(expected.size(), T(NAN)));
  A.multiply(x_there.at, y_there.at);
  expect(y_there.read(expected.size()) == as<T>(expected), std::string("A x: ") + what);
  A.multiply(2, x_there.at, -1, y_there.at);
  expect(y_there.read(expected.size()) == as<T>(expected), std::string("2 A x - y: ") + what);
}

void test_types() {
  cbgen::context context;
  cbgen::linear_operator<double> A(context, cbgen::csr(3, row_ptr, col_idx, values));
  expect_product(A, product, "double");
  expect(A.rows() == 4 && A.cols() == 3 && A.info().nnz == 5, "shape");
  cbgen::linear_operator<float> B(context, cbgen::csr(3, row_ptr, col_idx, as<float>(values)));
  expect_product(B, product, "float");
  expect_error([&] { cbgen::linear_operator<float>(context, cbgen::csr(3, row_ptr, col_idx, values)); },
               CBGEN_ERROR_ARGUMENT, "x and y of this operator are f64, not f32");
  context.set("type", "f32-f64");
  cbgen::linear_operator<double> mixed(context, cbgen::csr(3, row_ptr, col_idx, as<float>(values)));
  expect_product(mixed, product, "floats stored, doubles computed");
}

void test_forms() {
  cbgen::context context;
  const std::vector<std::int64_t> from_one{1, 3, 4, 4, 6}, columns{1, 3, 2, 1, 3}, rows{1, 1, 2, 4, 4};
  cbgen::linear_operator<double> A(context, cbgen::csr(3, from_one, columns, values).from_one().named("from one"));
  expect_product(A, product, "64 bits, from 1");
  cbgen::linear_operator<double> B(context,
                                   cbgen::coo(4, 3, 5, rows.data(), columns.data(), values.data()).from_one());
  expect_product(B, product, "COO");
  const std::vector<int> col_ptr{0, 2, 3, 5}, row_idx{0, 3, 1, 0, 3};
  const std::vector<double> by_column{2, 4, 3, 1, 5};
  cbgen::linear_operator<double> C(context, cbgen::csc(4, 3, 5, col_ptr.data(), row_idx.data(), by_column.data()));
  expect_product(C, product, "CSC");
  const std::vector<int> block_ptr{0, 1, 2}, block_col{0, 0};
  const std::vector<double> blocks{2, 0, 1, 0, 3, 0, 0, 0, 0, 4, 0, 5};
  cbgen::linear_operator<double> D(
      context, cbgen::bsr(4, 3, 2, 2, 3, block_ptr.data(), block_col.data(), blocks.data()));
  expect_product(D, product, "BSR");
  const device_array<int> row_there(row_ptr), col_there(col_idx);
  const device_array<double> values_there(values);
  cbgen::linear_operator<double> E(context,
                                   cbgen::csr(4, 3, 5, row_there.at, col_there.at, values_there.at).on_device());
  expect_product(E, product, "device memory");
  const double *const ones = nullptr;
  cbgen::linear_operator<double> F(context, cbgen::csr(4, 3, 5, row_ptr.data(), col_idx.data(), ones));
  expect_product(F, {4, 2, 0, 4}, "no values");
}

void test_errors() {
  cbgen::context context;
  expect_error([&] { context.set("recipe", "none"); }, CBGEN_ERROR_ARGUMENT, "'none'");
  expect_error([&] { cbgen::csr(3, std::vector<int>(), col_idx, values); }, CBGEN_ERROR_ARGUMENT, "'row_ptr' is empty");
  expect_error([&] { cbgen::csr(3, row_ptr, col_idx, std::vector<double>(4)); }, CBGEN_ERROR_ARGUMENT,
               "5 column indices and 4 values");
  expect_error([&] { cbgen::linear_operator<double>(context, cbgen::csr(2, row_ptr, col_idx, values)); },
               CBGEN_ERROR_ARGUMENT, "columns go from 0 to 1");
  expect(*cbgen_message(context.native()) != 0, "the context has a message");
  cbgen::linear_operator<double> A(context, cbgen::csr(3, row_ptr, col_idx, values));
  expect_error([&] { A.update_values(values.data(), CBGEN_HOST); }, CBGEN_ERROR_ARGUMENT, "");
  expect(A.try_update_values(values.data(), CBGEN_HOST) == CBGEN_ERROR_ARGUMENT, "a status instead of an exception");
  expect_error([&] { cbgen::linear_operator<double>(context, std::vector<std::byte>(100)); }, CBGEN_ERROR_FORMAT, "");
}

void test_ownership() {
  cbgen::context first;
  cbgen::context context = std::move(first);
  first = cbgen::context(); /* what was moved from may get another */
  first.set("recipe", "sell");
  cbgen::linear_operator<double> A(context, cbgen::csr(3, row_ptr, col_idx, values),
                                   cbgen::request(CBGEN_VALUES_MUTABLE, 100));
  cbgen::linear_operator<double> B = A.clone();
  cbgen::linear_operator<double> C = std::move(A);
  expect(!A.native() && A.try_multiply(1, nullptr, 0, nullptr) == CBGEN_ERROR_ARGUMENT,
         "what was moved from multiplies nothing");
  C.update_values(std::vector<double>{4, 2, 6, 8, 10}.data(), CBGEN_HOST);
  expect_product(B, {10, 12, 0, 38}, "a clone sees new values");
  cbgen::linear_operator<double> copy = C.copy(), other = copy.copy(values.data(), CBGEN_HOST);
  C.update_values(values.data(), CBGEN_HOST);
  expect_product(copy, {10, 12, 0, 38}, "a copy has values of its own");
  expect_product(other, {5, 6, 0, 19}, "or those that it is given");
  C.update_values(std::vector<double>{4, 2, 6, 8, 10}.data(), CBGEN_HOST);
  const std::vector<std::byte> saved = C.save();
  cbgen::linear_operator<double> D(context, saved);
  expect_product(D, {10, 12, 0, 38}, "saved and loaded");
  expect(D.key() == C.key() && D.plan() == C.plan() && D.source().find("__global__") != std::string_view::npos &&
             D.plan_json().front() == '{',
         "texts");
  C.unbind();
  C.specialise();
  expect(C.measure() > 0, "a product's time");
  const auto [rows, columns] = C.permutation();
  expect(rows.size() == std::size_t(C.rows()) && columns.size() == std::size_t(C.cols()) && rows[1] == 1 &&
             columns[1] == 1,
         "the order of vectors");
}

struct stop {};

void test_log() {
  cbgen::context context;
  int lines = 0;
  context.set_log([&](std::string_view line) { lines += !line.empty(); });
  cbgen::linear_operator<double> A(context, cbgen::csr(3, row_ptr, col_idx, values));
  expect(lines > 0, "the log is told");
  const int before = lines;
  context.set_log(nullptr);
  cbgen::linear_operator<double> B(context, cbgen::csr(3, row_ptr, col_idx, values));
  expect(lines == before, "no function, no log");
  context.set_log([](std::string_view) { throw stop(); });
  bool stopped = false;
  try {
    cbgen::linear_operator<double> C(context, cbgen::csr(3, row_ptr, col_idx, values));
  } catch (const stop &) {
    stopped = true;
  }
  expect(stopped, "an exception of the log function goes on");
  context.set_log(nullptr);
  cbgen::linear_operator<double> D(context, cbgen::csr(3, row_ptr, col_idx, values));
  expect_product(D, product, "after an exception of the log function");
}

long given, taken_back;

void *give(void *, std::size_t bytes, void *) {
  void *memory = nullptr;
  given++;
  return cudaMalloc(&memory, bytes) ? nullptr : memory;
}

void take_back(void *, void *memory, std::size_t, void *) {
  taken_back++;
  cudaFree(memory);
}

void test_allocator() {
  cbgen_allocator allocator{};
  allocator.allocate = give;
  expect_error([&] { cbgen::context().set_allocator(allocator); }, CBGEN_ERROR_ARGUMENT, "both functions");
  allocator.release = take_back;
  {
    cbgen::context context;
    context.set_allocator(allocator);
    cbgen::linear_operator<double> A(context, cbgen::csr(3, row_ptr, col_idx, values));
    expect_product(A, product, "memory of an allocator");
    expect(given > 0 && A.info().peak_bytes >= A.info().device_bytes, "memory comes from the allocator");
  }
  expect(given == taken_back, "all of it goes back");
}

void test_generation() {
  cbgen::context context;
  context.set("arch", "sm_80").set("form", "ax");
  const cbgen::kernel kernel(context, cbgen::csr(3, row_ptr, col_idx, values).named("little one"));
  expect(kernel.symbol() == "little_one" && kernel.source().find("sm_80") != std::string_view::npos &&
             kernel.plan().substr(0, 5) == "(spmv" && kernel.plan_json().front() == '{' && kernel.is_embedded() &&
             kernel.data().second > 0 && kernel.data().first && kernel.stored_bytes() > 0,
         "a kernel tells what it is");
  expect_error([&] { cbgen::kernel(context, cbgen::csr(2, row_ptr, col_idx, values)); }, CBGEN_ERROR_ARGUMENT, "");
}

} // namespace

/* A type of the application's own, as __half is. */
namespace app {
struct half {
  std::uint16_t bits;
};
} // namespace app
template <> struct cbgen::type_of<app::half> : cbgen::is_type<CBGEN_F16> {};

namespace {

void test_own_type() {
  const auto half_of = [](double number) { /* of 0 to 4 */
    static const std::uint16_t bits[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400};
    return app::half{bits[static_cast<int>(number)]};
  };
  std::vector<app::half> halves;
  for (const double value : {2.0, 1.0, 3.0, 4.0, 1.0}) halves.push_back(half_of(value));
  cbgen::context context;
  context.set("type", "f16");
  cbgen::linear_operator<app::half> A(context, cbgen::csr(3, row_ptr, col_idx, halves));
  const device_array<app::half> x_there({half_of(1), half_of(1), half_of(0)}), y_there(std::vector<app::half>(4));
  A.multiply(x_there.at, y_there.at);
  const std::vector<app::half> y = y_there.read(4);
  expect(y[0].bits == half_of(2).bits && y[1].bits == half_of(3).bits && y[2].bits == 0 && y[3].bits == half_of(4).bits,
         "a type of the application's own");
}

} // namespace

int main() {
  static_assert(CBGEN_VERSION >= 100 && CBGEN_VERSION_MAJOR == 0, "versions can be compared");
  const std::string version = std::to_string(CBGEN_VERSION_MAJOR) + "." + std::to_string(CBGEN_VERSION_MINOR) + "." +
                              std::to_string(CBGEN_VERSION_PATCH);
  expect(version == cbgen_version(), "the header's version is the library's");
  test_types();
  test_forms();
  test_errors();
  test_ownership();
  test_log();
  test_allocator();
  test_generation();
  test_own_type();
  cbgen_trim();
  if (!failures) std::puts("cbgen.hpp does what it says");
  return failures != 0;
}
