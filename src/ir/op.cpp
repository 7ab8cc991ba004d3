// The op table.
#include "ir/op.h"

#include <algorithm>
#include <string>
#include <vector>

namespace picokernel::ir {
namespace {

constexpr std::string_view without_underscore(std::string_view name) {
  return name.ends_with('_') ? name.substr(0, name.size() - 1) : name;
}

constexpr OpInfo kOps[] = {
#define PK_OP(name, level, operands, rule, allowed, attribute, effect, regions, meaning)                      \
  {Opcode::name, without_underscore(#name), Level::level, operands, Rule::rule, Allowed::allowed,             \
   Attribute::attribute, Effect::effect, regions, meaning},
#include "ir/ops.def"
#undef PK_OP
};

// Insertions, deletions, substitutions and swaps of neighbours.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

}  // namespace

const OpInfo& info(Opcode opcode) { return kOps[static_cast<size_t>(opcode)]; }

std::span<const OpInfo> all_ops() { return kOps; }

std::optional<Opcode> opcode_from_name(std::string_view name) {
  for (const OpInfo& op : kOps)
    if (op.name == name) return op.opcode;
  return std::nullopt;
}

std::optional<Opcode> nearest_opcode(std::string_view name) {
  const auto nearest = std::ranges::min_element(
      kOps, {}, [&](const OpInfo& op) { return edit_distance(name, op.name); });
  const size_t distance = edit_distance(name, nearest->name);
  if (distance > 2 || distance >= name.size()) return std::nullopt;
  return nearest->opcode;
}

}  // namespace picokernel::ir
