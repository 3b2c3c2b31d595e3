// Entries of 16 bits: each pattern is its own rounding, the halfway point to the next one goes to the even one of both,
// and what lies beside that point to the nearer one. NaN is 0x7fff. y counts what is wrong; behind the counts stand
// roundings of x times powers of two, by their bits.
constexpr int kBlocks = 2, kThreads = 32;

template <class T> static float number_of_bits(int bits) {
  T entry;
  entry.bits = uint16_t(bits);
  return entry;
}

// The float that has `more` added to its bits.
static float beside(float number, int more) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  bits += uint32_t(more);
  memcpy(&number, &bits, sizeof number);
  return number;
}

// `infinite`: the pattern of infinity.
template <class T> static int wrong_at(int bits, int infinite) {
  const int magnitude = bits & 0x7fff;
  const float own = number_of_bits<T>(bits);
  if (magnitude > infinite) return T(own).bits != 0x7fff;
  int wrong = T(own).bits != bits;
  if (magnitude >= infinite - 1) return wrong;  // what is beyond the largest has a test of its own
  const float next = number_of_bits<T>(bits + 1), middle = float(0.5 * (double(own) + double(next)));
  wrong += T(middle).bits != bits + (bits & 1);
  wrong += T(beside(middle, -1)).bits != bits;
  wrong += T(beside(middle, 1)).bits != bits + 1;
  return wrong;
}

template <class T> static int wrong_beyond(float limit, int infinite, float next_power) {
  int wrong = T(limit).bits != infinite || T(-limit).bits != (infinite | 0x8000);
  wrong += T(beside(limit, -1)).bits != infinite - 1;
  wrong += T(next_power).bits != infinite || T(beside(0, 0x7f800000)).bits != infinite;
  wrong += T(beside(0, 1)).bits != 0 || T(-beside(0, 1)).bits != 0x8000;
  return wrong + (T(beside(0, 0x7f800001)).bits != 0x7fff) + (T(beside(0, -1)).bits != 0x7fff);
}

CBGEN_KERNEL void __launch_bounds__(32) kernel(const double *x, double *y) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  int halves = 0, bfloats = 0;
  for (int bits = 1024 * i; bits < 1024 * (i + 1); bits++) {
    halves += wrong_at<half_entry_t>(bits, 0x7c00);
    bfloats += wrong_at<bfloat16_entry_t>(bits, 0x7f80);
  }
  halves += wrong_beyond<half_entry_t>(65520, 0x7c00, 65536);
  bfloats += wrong_beyond<bfloat16_entry_t>(0x1.ffp127f, 0x7f80, beside(0, 0x7f7fffff));
  y[i] = halves;
  y[64 + i] = bfloats;
  for (int k = 0; k < 6; k++) {
    float scaled = float(load(x + i)) / 3;
    for (int j = 0; j < 4 * k; j++) scaled /= 3;
    y[128 + 64 * k + i] = half_entry_t(scaled).bits;
    y[512 + 64 * k + i] = bfloat16_entry_t(scaled).bits;
  }
}
