// oneDNN's functions, looked up in the library when they are first called, so that nothing needs oneDNN that
// does not ask for it. Its C++ header is written in terms of its C functions: behind this header their names,
// as many as we use of them, mean what was looked up. One that is missing below is an undefined symbol at
// link time.
#pragma once

#include <oneapi/dnnl/dnnl.h>

namespace tilesmith::onednn {

// Of oneDNN or of what it is linked with, which its OpenMP is. Throws Error(kEnvironment) where oneDNN is not
// installed, naming the package that has it, or has no such function. Thread-safe.
void* FindSymbol(const char* name);

template <typename Function>
Function Find(const char* name) {
  return reinterpret_cast<Function>(FindSymbol(name));
}

}  // namespace tilesmith::onednn

#define TILESMITH_DNNL(name)                                                        \
  (*[] {                                                                            \
    static const auto function = tilesmith::onednn::Find<decltype(&(name))>(#name); \
    return function;                                                                \
  }())

#define dnnl_concat_primitive_desc_create TILESMITH_DNNL(dnnl_concat_primitive_desc_create)
#define dnnl_engine_create TILESMITH_DNNL(dnnl_engine_create)
#define dnnl_engine_destroy TILESMITH_DNNL(dnnl_engine_destroy)
#define dnnl_memory_create TILESMITH_DNNL(dnnl_memory_create)
#define dnnl_memory_desc_equal TILESMITH_DNNL(dnnl_memory_desc_equal)
#define dnnl_memory_desc_get_size TILESMITH_DNNL(dnnl_memory_desc_get_size)
#define dnnl_memory_destroy TILESMITH_DNNL(dnnl_memory_destroy)
#define dnnl_memory_get_engine TILESMITH_DNNL(dnnl_memory_get_engine)
#define dnnl_memory_get_memory_desc TILESMITH_DNNL(dnnl_memory_get_memory_desc)
#define dnnl_post_ops_append_eltwise TILESMITH_DNNL(dnnl_post_ops_append_eltwise)
#define dnnl_post_ops_append_sum TILESMITH_DNNL(dnnl_post_ops_append_sum)
#define dnnl_post_ops_create TILESMITH_DNNL(dnnl_post_ops_create)
#define dnnl_post_ops_destroy TILESMITH_DNNL(dnnl_post_ops_destroy)
#define dnnl_primitive_attr_create TILESMITH_DNNL(dnnl_primitive_attr_create)
#define dnnl_primitive_attr_destroy TILESMITH_DNNL(dnnl_primitive_attr_destroy)
#define dnnl_primitive_attr_set_post_ops TILESMITH_DNNL(dnnl_primitive_attr_set_post_ops)
#define dnnl_primitive_create TILESMITH_DNNL(dnnl_primitive_create)
#define dnnl_primitive_desc_destroy TILESMITH_DNNL(dnnl_primitive_desc_destroy)
#define dnnl_primitive_desc_query TILESMITH_DNNL(dnnl_primitive_desc_query)
#define dnnl_primitive_desc_query_md TILESMITH_DNNL(dnnl_primitive_desc_query_md)
#define dnnl_primitive_destroy TILESMITH_DNNL(dnnl_primitive_destroy)
#define dnnl_primitive_execute TILESMITH_DNNL(dnnl_primitive_execute)
#define dnnl_reorder_primitive_desc_create TILESMITH_DNNL(dnnl_reorder_primitive_desc_create)
#define dnnl_set_max_cpu_isa TILESMITH_DNNL(dnnl_set_max_cpu_isa)
#define dnnl_stream_create TILESMITH_DNNL(dnnl_stream_create)
#define dnnl_stream_destroy TILESMITH_DNNL(dnnl_stream_destroy)
#define dnnl_stream_wait TILESMITH_DNNL(dnnl_stream_wait)
#define dnnl_sum_primitive_desc_create TILESMITH_DNNL(dnnl_sum_primitive_desc_create)
#define dnnl_version TILESMITH_DNNL(dnnl_version)

#if DNNL_VERSION_MAJOR >= 3
#define dnnl_batch_normalization_forward_primitive_desc_create \
  TILESMITH_DNNL(dnnl_batch_normalization_forward_primitive_desc_create)
#define dnnl_binary_primitive_desc_create TILESMITH_DNNL(dnnl_binary_primitive_desc_create)
#define dnnl_convolution_forward_primitive_desc_create \
  TILESMITH_DNNL(dnnl_convolution_forward_primitive_desc_create)
#define dnnl_eltwise_forward_primitive_desc_create TILESMITH_DNNL(dnnl_eltwise_forward_primitive_desc_create)
#define dnnl_inner_product_forward_primitive_desc_create \
  TILESMITH_DNNL(dnnl_inner_product_forward_primitive_desc_create)
#define dnnl_memory_desc_clone TILESMITH_DNNL(dnnl_memory_desc_clone)
#define dnnl_memory_desc_create_with_strides TILESMITH_DNNL(dnnl_memory_desc_create_with_strides)
#define dnnl_memory_desc_create_with_tag TILESMITH_DNNL(dnnl_memory_desc_create_with_tag)
#define dnnl_memory_desc_destroy TILESMITH_DNNL(dnnl_memory_desc_destroy)
#define dnnl_memory_desc_query TILESMITH_DNNL(dnnl_memory_desc_query)
#define dnnl_pooling_forward_primitive_desc_create TILESMITH_DNNL(dnnl_pooling_forward_primitive_desc_create)
#define dnnl_primitive_desc_next_impl TILESMITH_DNNL(dnnl_primitive_desc_next_impl)
#define dnnl_softmax_forward_primitive_desc_create TILESMITH_DNNL(dnnl_softmax_forward_primitive_desc_create)
#else
#define dnnl_batch_normalization_forward_desc_init TILESMITH_DNNL(dnnl_batch_normalization_forward_desc_init)
#define dnnl_binary_desc_init TILESMITH_DNNL(dnnl_binary_desc_init)
#define dnnl_dilated_convolution_forward_desc_init TILESMITH_DNNL(dnnl_dilated_convolution_forward_desc_init)
#define dnnl_eltwise_forward_desc_init TILESMITH_DNNL(dnnl_eltwise_forward_desc_init)
#define dnnl_inner_product_forward_desc_init TILESMITH_DNNL(dnnl_inner_product_forward_desc_init)
#define dnnl_memory_desc_init_by_strides TILESMITH_DNNL(dnnl_memory_desc_init_by_strides)
#define dnnl_memory_desc_init_by_tag TILESMITH_DNNL(dnnl_memory_desc_init_by_tag)
#define dnnl_pooling_v2_forward_desc_init TILESMITH_DNNL(dnnl_pooling_v2_forward_desc_init)
#define dnnl_primitive_attr_set_output_scales TILESMITH_DNNL(dnnl_primitive_attr_set_output_scales)
#define dnnl_primitive_attr_set_zero_points TILESMITH_DNNL(dnnl_primitive_attr_set_zero_points)
#define dnnl_primitive_desc_iterator_create TILESMITH_DNNL(dnnl_primitive_desc_iterator_create)
#define dnnl_primitive_desc_iterator_destroy TILESMITH_DNNL(dnnl_primitive_desc_iterator_destroy)
#define dnnl_primitive_desc_iterator_fetch TILESMITH_DNNL(dnnl_primitive_desc_iterator_fetch)
#define dnnl_softmax_v2_forward_desc_init TILESMITH_DNNL(dnnl_softmax_v2_forward_desc_init)
#endif
