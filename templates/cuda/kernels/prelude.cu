// What kernels use beside CUDA C++ itself. An emulation defines TS_EMULATED and the same functions:
//
//   ts_shared()                          the block's dynamic shared memory, aligned to 16 bytes
//   ts_copy16(shared, global, inside)    asynchronous copy of 16 bytes, zeros where not inside; both aligned
//   ts_copy4(shared, global, inside)     the same of 4 bytes
//   ts_commit(), ts_wait<N>()            end a group of copies; wait for all groups but the last N
//   ts_mma_tf32(d, a, b)                 d += a * b of one warp: 16 x 8 x 8, row by column, TF32 operands
//   ts_tf32(x)                           x rounded to TF32
struct TsArgs {
  const float* in[4];
  long long in_stride[4];  // floats from one image to the next
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
__device__ __forceinline__ void ts_mma_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif
