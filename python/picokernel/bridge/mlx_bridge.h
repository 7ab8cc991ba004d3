// What the bridge gives to the Python module: MLX's arrays behind plain pointers to functions.
// Pointers to arrays are those of mlx::core::array objects.
#pragma once

#include <picokernel/deferred.h>

namespace picokernel::graph {

struct ArrayDescription {
  DType dtype;
  size_t rank;
  const int32_t* shape;  // valid as long as the array
};

struct Bridge {
  size_t size;  // of this struct
  const char* (*mlx_version)();
  /// Whether this is where an array lies: of int16 and shape (3,), for a probe of how Python holds
  /// arrays.
  bool (*is_array)(const void* p);
  /// The current stream of this thread is a CPU's.
  bool (*on_cpu)();
  /// Throws nothing. False: a type that kernels do not know.
  bool (*describe)(const void* array, ArrayDescription* d);
  /// Binds the outputs, which exist, to the results of the call, which it takes. Null, or why not.
  const char* (*enqueue)(DeferredCall* call, const void* const* inputs, size_t count,
                         void* const* outputs);
  /// Binds `array` to what `value` is.
  void (*rebind)(void* array, const void* value);
  /// Gives back what is kept for large results; gives the bytes.
  size_t (*trim)();
  /// Binds `array` to C-contiguous memory of others, which nobody writes; `release(owner)` is
  /// called on any thread once no array of MLX needs it. False: this MLX takes none, nothing has
  /// happened.
  bool (*adopt)(void* array, void* data, DType dtype, size_t rank, const int64_t* shape,
                void (*release)(void*), void* owner);
};

}  // namespace picokernel::graph

/// The bridge's one symbol.
extern "C" __attribute__((visibility("default"))) const picokernel::graph::Bridge*
picokernel_mlx_bridge();
