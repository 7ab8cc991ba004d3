// Common subexpressions.
#include <map>
#include <tuple>

#include "ir/rewriter.h"
#include "passes/common/passes.h"
#include "passes/graph/storage.h"

namespace picokernel::passes {

using namespace ir;

namespace {

// What makes two ops equal. Maps compare by content: every view has its own.
using Key =
    std::tuple<BlockId, Opcode, std::vector<ValueId>, DType, uint64_t, TypeId, IndexMap, uint64_t>;

}  // namespace

Module cse(const Module& m, const Target&) {
  std::map<Key, ValueId> seen;
  std::map<ValueId, uint64_t> versions;  // of storages, by root in the old module
  return Rewriter(m).run([&](Rewriter& r, OpId id) -> std::optional<std::vector<ValueId>> {
    const Op& op = r.from().ops[id];
    if (op.opcode == Opcode::write) ++versions[root_of(m, op.operands[0])];
    const bool read = op.opcode == Opcode::read;
    if (!info(op.opcode).pure() && !read) return std::nullopt;
    const bool map = info(op.opcode).attribute == Attribute::map;
    Key key{r.builder().insertion_block(),
            op.opcode,
            r.mapped(op.operands),
            op.scalar_dtype,
            map ? 0 : op.attribute,
            m.values[op.results[0]].type,
            map ? m.maps[op.map()] : IndexMap{},
            read ? versions[root_of(m, op.operands[0])] : 0};
    if (const auto it = seen.find(key); it != seen.end()) return {{it->second}};
    const ValueId made = r.copy(id, nullptr)[0];
    seen.emplace(std::move(key), made);
    return {{made}};
  });
}

}  // namespace picokernel::passes
