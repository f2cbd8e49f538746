// What kernels use beside CUDA C++ itself. An emulation defines TS_EMULATED and the same functions:
//
//   ts_shared()                          the block's dynamic shared memory, aligned to 16 bytes
//   ts_copy16(shared, global, inside)    asynchronous copy of 16 bytes, zeros where not inside; both aligned
//   ts_copy4(shared, global, inside)     the same of 4 bytes
//   ts_commit(), ts_wait<N>()            end a group of copies; wait for all groups but the last N
//   ts_mma_tf32(d, a, b)                 d += a * b of one warp: 16 x 8 x 8, row by column, TF32 operands
//   ts_tf32(x)                           x rounded to TF32
//   ts_mma_bf16(d, a, b)                 d += a * b of one warp: 16 x 8 x 16, row by column, bf16 in pairs
//   ts_bf16(x)                           x rounded to bf16: its 16 bits
//   ts_bf16_pair(x, y)                   both, x in the lower half
//   ts_mma_bytes<kSigned>(d, a, b)       d += a * b of one warp: 16 x 8 x 32, row by column, bytes in fours: those
//                                        of a with a sign where kSigned, those of b always; d wraps around
struct TsArgs {
  const float* in[4];
  long long in_stride[4];  // elements from one image to the next, as the launch counts them
  float* out;
  long long out_stride;
  float* scratch;
  const float* weights;
};

#ifndef TS_EMULATED
__device__ __forceinline__ float* ts_shared() {
  extern __shared__ float4 ts_shared_memory[];
  return reinterpret_cast<float*>(ts_shared_memory);
}
__device__ __forceinline__ void ts_copy16(float* shared, const float* global, bool inside) {
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(inside ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void ts_copy4(float* shared, const float* global, bool inside) {
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(global), "r"(inside ? 4 : 0)
               : "memory");
}
__device__ __forceinline__ void ts_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
__device__ __forceinline__ void ts_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
__device__ __forceinline__ unsigned ts_tf32(float x) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return bits;
}
__device__ __forceinline__ unsigned short ts_bf16(float x) {
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
__device__ __forceinline__ unsigned ts_bf16_pair(float x, float y) {
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(y), "f"(x));
  return bits;
}
__device__ __forceinline__ void ts_mma_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void ts_mma_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
template <bool kSigned>
__device__ __forceinline__ void ts_mma_bytes(unsigned (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  if constexpr (kSigned) {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}
#endif

// Elements as they are stored, and the floats that they stand for.
struct TsBf16 {
  unsigned short bits;
};
__device__ __forceinline__ float ts_real(float stored) { return stored; }
__device__ __forceinline__ float ts_real(TsBf16 stored) {
  return __uint_as_float(static_cast<unsigned>(stored.bits) << 16);
}
__device__ __forceinline__ void ts_store(float& to, float value) { to = value; }
__device__ __forceinline__ void ts_store(TsBf16& to, float value) { to.bits = ts_bf16(value); }
// Where only numbers say how elements are stored, by their bytes: floats, bf16, or bytes of any kind, which are taken
// for unsigned ones.
__device__ __forceinline__ float ts_real_at(const float* tensor, long long at, int bytes) {
  if (bytes == 2) return ts_real(reinterpret_cast<const TsBf16*>(tensor)[at]);
  return bytes == 1 ? reinterpret_cast<const unsigned char*>(tensor)[at] : tensor[at];
}
__device__ __forceinline__ void ts_store_at(float* tensor, long long at, int bytes, float value) {
  if (bytes == 2) {
    ts_store(reinterpret_cast<TsBf16*>(tensor)[at], value);
  } else if (bytes == 1) {
    reinterpret_cast<unsigned char*>(tensor)[at] = static_cast<unsigned char>(value);
  } else {
    tensor[at] = value;
  }
}
