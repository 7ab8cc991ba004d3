// Which known name a misspelt one was meant to be.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace picokernel {

/// The known name with the fewest edits, if they are few enough for the name's length.
std::optional<std::string_view> nearest(std::string_view name,
                                        std::span<const std::string_view> known);

}  // namespace picokernel
