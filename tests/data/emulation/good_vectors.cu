// Vector loads of 8, 16 and 32 bytes, integers of every width, bit counts.
constexpr int kBlocks = 2, kThreads = 32;
CBGEN_KERNEL void __launch_bounds__(32) kernel(const double *x, double *y) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  const Vector<double, 4> four = load_stream_vector<double, 4>(x + 4 * i);
  const Vector<double, 2> two = load_stream_vector<double, 2>(x + 2 * i);
  const Vector<uint8_t, 8> bytes = load_stream_vector<uint8_t, 8>((const uint8_t *)(x + i));
  uint64_t bits = 0;
  for (int b = 0; b < 8; b++) bits |= (uint64_t)bytes.at[b] << (8 * b);
  const uint64_t same = load_stream((const uint64_t *)(x + i));
  const int counts = __popc(0xf0u) + __popcll(7ull << 40) + __ffs(8) + __clz(1) + __clzll(0);
  y[i] = four.at[0] + four.at[3] + two.at[1] + (bits == same ? counts : -1) + max(i, 3) + min(2.0, 1.0);
}
