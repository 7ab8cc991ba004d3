// The op table.
#include "ir/op.h"

#include <vector>

#include "support/nearest.h"

namespace picokernel::ir {
namespace {

constexpr std::string_view without_underscore(std::string_view name) {
  return name.ends_with('_') ? name.substr(0, name.size() - 1) : name;
}

constexpr OpInfo kOps[] = {
#define PK_OP(name, level, operands, rule, allowed, attribute, effect, regions, meaning) \
  {Opcode::name,     without_underscore(#name), Level::level,   operands, Rule::rule,    \
   Allowed::allowed, Attribute::attribute,      Effect::effect, regions,  meaning},
#include "ir/ops.def"
#undef PK_OP
};

}  // namespace

const OpInfo& info(Opcode opcode) { return kOps[static_cast<size_t>(opcode)]; }

std::span<const OpInfo> all_ops() { return kOps; }

std::optional<Opcode> opcode_from_name(std::string_view name) {
  for (const OpInfo& op : kOps)
    if (op.name == name) return op.opcode;
  return std::nullopt;
}

std::optional<Opcode> nearest_opcode(std::string_view name) {
  std::vector<std::string_view> names;
  for (const OpInfo& op : kOps) names.push_back(op.name);
  const auto near = nearest(name, names);
  return near ? opcode_from_name(*near) : std::nullopt;
}

}  // namespace picokernel::ir
