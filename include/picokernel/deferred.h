// Calls that another library's graph makes later. picokernel/mlx.h puts them into MLX's.
#pragma once

#include <cstddef>
#include <cstdint>

#include <picokernel/api.h>
#include <picokernel/dtype.h>

namespace picokernel {

/// One call of a kernel, with all but its arrays: whoever holds it runs it when these are there, on
/// any thread, as often as it likes. Nothing here throws, allocates for the caller or needs a
/// library: holder and maker may have been built by different compilers.
class DeferredCall {
 public:
  struct Array {
    void* data;
    const int64_t* shape;    // in elements
    const int64_t* strides;  // in bytes
  };
  struct Output {
    DType dtype;
    uint32_t rank;
    const int64_t* shape;  // for the sizes of the call
    int32_t continues;     // the input that it is a changed copy of; -1: none
    uint64_t donors;       // bit i: it may take input i's memory, where shape and strides agree
  };

  virtual const char* name() const noexcept = 0;
  virtual size_t output_count() const noexcept = 0;
  virtual const Output& output(size_t i) const noexcept = 0;
  /// Gives the same results for the same arrays.
  virtual bool equals(const DeferredCall& other) const noexcept = 0;
  /// Reads the inputs and writes the outputs, which are contiguous. Null, or why it could not; the
  /// text is valid until this thread asks again.
  virtual const char* run(const Array* inputs, const Array* outputs) noexcept = 0;
  /// The call as operations of the graph's library: from its arrays to its arrays, which exist and
  /// are bound anew. Null, or why there is none.
  virtual const char* replay(const void* const* inputs, void* const* outputs) noexcept = 0;
  /// The call is needed no longer.
  virtual void release() noexcept = 0;

 protected:
  ~DeferredCall() = default;
};

}  // namespace picokernel
