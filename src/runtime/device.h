// Where memory lives and kernels run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace picokernel::runtime {

// X(enumerator)
#define PK_DEVICE_KINDS(X) X(cpu) X(cuda) X(metal)

enum class DeviceKind : uint8_t {
#define PK_DEVICE_ENUMERATOR(name) name,
  PK_DEVICE_KINDS(PK_DEVICE_ENUMERATOR)
#undef PK_DEVICE_ENUMERATOR
};

constexpr std::string_view to_string(DeviceKind kind) {
  constexpr std::string_view names[] = {
#define PK_DEVICE_NAME(name) #name,
      PK_DEVICE_KINDS(PK_DEVICE_NAME)
#undef PK_DEVICE_NAME
  };
  return names[static_cast<size_t>(kind)];
}

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int32_t index = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

/// "cpu:0"
inline std::string to_string(Device device) {
  return std::string(to_string(device.kind)) + ":" + std::to_string(device.index);
}

}  // namespace picokernel::runtime
