// Which expressions may differ between the threads of a block.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "frontend/threads/tree.h"

namespace picokernel::frontend::threads {

class Divergence {
 public:
  /// Parameters count as equal for all threads: of a kernel they are, and what functions are given
  /// the reference interpreter looks at.
  Divergence(const Program& program, const Function& function);

  /// Through what it depends on the thread, as in "`i`"; nothing: it does not.
  std::optional<std::string> source(const Node& expression) const;

 private:
  void look(std::span<const Node> statements, const std::optional<std::string>& around);
  void assign(const Node& target, const Node& value, const std::optional<std::string>& around);
  void mark(const Node& target, const std::optional<std::string>& source);

  const Program& program_;
  std::map<std::string, std::string> sources_;  // by variable
  bool changed_ = false;
};

/// The nodes hold a barrier, or a call of a function that does.
bool has_barrier(const Program& program, std::span<const Node> nodes);

}  // namespace picokernel::frontend::threads
