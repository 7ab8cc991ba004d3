// Object code in executable memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace picokernel::backend::cpu {

// The memory is unmapped when this goes.
class LoadedCode {
 public:
  virtual ~LoadedCode() = default;
  /// The address of a function of the object. Throws InternalError if there is none of that name.
  virtual void* symbol(const std::string& name) const = 0;
};

/// Links an object file against the allow-list of outside functions; any other undefined symbol is
/// an InternalError.
std::unique_ptr<LoadedCode> load_object(std::string_view object);

/// Memory of the launch that is running on this thread, for count elements of that size; null when
/// there is none.
void* allocate_for_launch(uint64_t count, uint64_t size) noexcept;

}  // namespace picokernel::backend::cpu
