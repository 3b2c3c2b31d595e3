// SPDX-License-Identifier: Apache-2.0
// Whether compute-sanitizer can be believed in bodies of conditional nodes of a CUDA graph: one thread block of 256 threads
// meets at one barrier, launched plainly, in a graph, or by a node that repeats it four times.
//
//   nvcc -arch=sm_90 -lineinfo -o sanitizer bench/sanitizer.cu
//   compute-sanitizer --tool synccheck ./sanitizer plain      likewise: graph, loop; memcheck
//
// All three are right. compute-sanitizer 2025.3.1 (CUDA 13.0) says so of the first two alone; solvers and linear programs
// avoid the third with CBGEN_DEBUG (docs/inspecting.md) for as long as that is so.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

static void check(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return;
  printf("%s: %s\n", what, cudaGetErrorString(error));
  exit(1);
}
#define CHECK(call) check(call, #call)

__global__ void meet(int *numbers) {
  numbers[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) numbers[1] += numbers[2];
}

__global__ void again(cudaGraphConditionalHandle handle, int *rounds) {
  cudaGraphSetConditional(handle, ++*rounds < 4);
}

static cudaGraph_t body_of(cudaGraph_t graph, cudaGraphConditionalHandle *handle) {
  cudaGraphNodeParams params = {cudaGraphNodeTypeConditional};
  cudaGraphNode_t node;
  CHECK(cudaGraphConditionalHandleCreate(handle, graph, 1, cudaGraphCondAssignDefault));
  params.conditional.handle = *handle;
  params.conditional.type = cudaGraphCondTypeWhile;
  params.conditional.size = 1;
#if CUDART_VERSION >= 13000
  CHECK(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
#else
  CHECK(cudaGraphAddNode(&node, graph, nullptr, 0, &params));
#endif
  return params.conditional.phGraph_out[0];
}

int main(int count, char **words) {
  const char *way = count > 1 ? words[1] : "loop";
  int *numbers, *rounds, found = 0;
  cudaStream_t stream;
  CHECK(cudaMalloc(&numbers, 1024));
  CHECK(cudaMalloc(&rounds, sizeof *rounds));
  CHECK(cudaMemset(rounds, 0, sizeof *rounds));
  CHECK(cudaStreamCreate(&stream));
  if (!strcmp(way, "plain")) {
    meet<<<1, 256, 0, stream>>>(numbers);
  } else {
    cudaGraph_t graph, filled;
    cudaGraphExec_t exec;
    cudaGraphConditionalHandle handle = 0;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraph_t place = strcmp(way, "loop") ? graph : body_of(graph, &handle);
    CHECK(cudaStreamBeginCaptureToGraph(stream, place, nullptr, nullptr, 0, cudaStreamCaptureModeThreadLocal));
    meet<<<1, 256, 0, stream>>>(numbers);
    if (handle) again<<<1, 1, 0, stream>>>(handle, rounds);
    CHECK(cudaStreamEndCapture(stream, &filled));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, stream));
  }
  CHECK(cudaGetLastError());
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(&found, numbers + 1, sizeof found, cudaMemcpyDeviceToHost));
  printf("%s: %s\n", way, found == 3 ? "right" : "wrong");
  return found != 3;
}
