// SPDX-License-Identifier: Apache-2.0
/* Heat in a square plate by explicit steps, u ← (I + τ Δ) u, in C++17 with cbgen.hpp: one operator, two vectors that
 * change places.
 *
 *   heat [N [STEPS]]      N × N cells with insulated edges (256), so that no heat is lost; 200 steps
 *
 * The same steps are made on the host, and compared. Exit status: 0; 1 where they differ; 2 with a message when
 * something failed. */
#include <cbgen.hpp>
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

void cuda(cudaError_t status) {
  if (status) throw std::runtime_error(cudaGetErrorString(status));
}

struct device_free {
  void operator()(double *memory) const noexcept { cudaFree(memory); }
};
using device_vector = std::unique_ptr<double[], device_free>;

device_vector to_device(const std::vector<double> &values) {
  void *memory = nullptr;
  cuda(cudaMalloc(&memory, values.size() * sizeof(double)));
  device_vector result(static_cast<double *>(memory));
  cuda(cudaMemcpy(memory, values.data(), values.size() * sizeof(double), cudaMemcpyHostToDevice));
  return result;
}

struct stream {
  cudaStream_t native = nullptr;
  stream() { cuda(cudaStreamCreate(&native)); }
  ~stream() { cudaStreamDestroy(native); }
  stream(const stream &) = delete;
  stream &operator=(const stream &) = delete;
};

struct csr {
  std::vector<std::int32_t> row_ptr{0}, col_idx;
  std::vector<double> values;
};

/* I + τ Δ with τ = 0.2, row by row; a cell at an edge has fewer neighbours. */
csr plate(std::int32_t n) {
  csr matrix;
  for (std::int32_t i = 0; i < n; i++)
    for (std::int32_t j = 0; j < n; j++) {
      const int near = (i > 0) + (i < n - 1) + (j > 0) + (j < n - 1);
      const auto add = [&](bool is_there, std::int32_t cell, double value) {
        if (!is_there) return;
        matrix.col_idx.push_back(cell);
        matrix.values.push_back(value);
      };
      const std::int32_t own = i * n + j;
      add(i > 0, own - n, 0.2);
      add(j > 0, own - 1, 0.2);
      add(true, own, 1 - 0.2 * near);
      add(j < n - 1, own + 1, 0.2);
      add(i < n - 1, own + n, 0.2);
      matrix.row_ptr.push_back(static_cast<std::int32_t>(matrix.col_idx.size()));
    }
  return matrix;
}

std::vector<double> multiply(const csr &A, const std::vector<double> &x) {
  std::vector<double> y;
  std::size_t k = 0;
  for (std::size_t row = 0; row + 1 < A.row_ptr.size(); row++) {
    double sum = 0;
    for (; k < static_cast<std::size_t>(A.row_ptr[row + 1]); k++)
      sum += A.values[k] * x[static_cast<std::size_t>(A.col_idx[k])];
    y.push_back(sum);
  }
  return y;
}

/* Each step rounds a cell by at most some units in its last place, and never lets an error grow: rows are ≥ 0 and sum
 * up to 1. */
bool is_near(const std::vector<double> &a, const std::vector<double> &b, int steps) {
  for (std::size_t i = 0; i < a.size(); i++)
    if (!(std::abs(a[i] - b[i]) <= 16 * (steps + 1) * 1.2e-16)) return false;
  return true;
}

int run(std::int32_t n, int steps) {
  const csr A = plate(n);
  std::vector<double> u(A.row_ptr.size() - 1);
  u[u.size() / 2] = 1; /* all heat in one cell */
  const stream work;

  cbgen::context context;
  cbgen::request request;
  request.expected_products = steps;
  cbgen::linear_operator<double> step(
      context, cbgen::csr(n * std::int64_t{n}, A.row_ptr, A.col_idx, A.values).named("plate"), request);
  const cbgen_info info = step.info();
  std::printf("cbgen %s: %s\n%.1f ms of set-up, %.2f bytes per nonzero\n", cbgen_version(),
              std::string(step.plan()).c_str(), 1e3 * info.total_seconds, info.bytes_per_nonzero);

  device_vector now = to_device(u), next = to_device(u);
  for (int i = 0; i < steps; i++) {
    step.multiply(now.get(), next.get(), work.native);
    std::swap(now, next);
  }
  cuda(cudaStreamSynchronize(work.native));

  std::vector<double> result(u.size());
  cuda(cudaMemcpy(result.data(), now.get(), result.size() * sizeof(double), cudaMemcpyDeviceToHost));
  for (int i = 0; i < steps; i++) u = multiply(A, u);
  const bool passed = is_near(result, u, steps);
  std::printf("%d steps of %zu cells: %s\n", steps, u.size(), passed ? "passed" : "FAILED");
  return passed ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 256, steps = argc > 2 ? std::atoi(argv[2]) : 200;
  try {
    if (n < 1 || n > 10000 || steps < 0) throw std::runtime_error("heat [N [STEPS]]: N is 1 to 10000");
    return run(n, steps);
  } catch (const cbgen::error &failure) {
    std::fprintf(stderr, "cbgen: %s (%s)\n", failure.what(), cbgen_status_name(failure.status()));
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "heat: %s\n", failure.what());
  }
  return 2;
}
