// From nodes to ops.
#include "passes/legalize/math/formula.h"

#include <set>
#include <utility>

#include "support/check.h"

namespace picokernel::passes::math {

using ir::Opcode;
using ir::ValueId;

uint32_t Formula::add(Node node) {
  nodes_.push_back(std::move(node));
  return static_cast<uint32_t>(nodes_.size() - 1);
}

Value Formula::of(ValueId v) {
  return {this, add({.dtype = b_.module().type(v).dtype, .emitted = v, .kind = Node::Kind::given})};
}

Value Formula::constant(ir::Scalar s) {
  return {this, add({.dtype = s.dtype, .attribute = s.bits, .kind = Node::Kind::constant})};
}

Value Formula::op(Opcode opcode, Values operands) {
  const ir::Rule rule = ir::info(opcode).rule;
  Node node{.opcode = opcode,
            .dtype = rule == ir::Rule::compare || rule == ir::Rule::test ? DType::b1
                                                                         : dtype(operands.back())};
  for (const Value v : operands) node.operands.push_back(v.node());
  return {this, add(std::move(node))};
}

Value Formula::cast(Value v, DType to) {
  if (dtype(v) == to) return v;
  return {this, add({.opcode = Opcode::cast, .dtype = to, .operands = {v.node()}})};
}
Value Formula::bitcast(Value v, DType to) {
  if (dtype(v) == to) return v;
  return {this, add({.opcode = Opcode::bitcast, .dtype = to, .operands = {v.node()}})};
}

Values Formula::results_of(uint32_t control, std::span<const Value> like) {
  Values results;
  for (size_t i = 0; i < like.size(); ++i)
    results.push_back({this, add({.dtype = dtype(like[i]),
                                  .attribute = i,
                                  .owner = control,
                                  .kind = Node::Kind::result})});
  return results;
}

Values Formula::branch(Value condition, const std::function<Values()>& then, Values otherwise) {
  Region region{.first = static_cast<uint32_t>(nodes_.size())};
  region.results = then();
  PK_CHECK(region.results.size() == otherwise.size(), "a branch's sides give different numbers");
  Node node{.opcode = Opcode::if_, .operands = {condition.node()}, .kind = Node::Kind::control};
  // Made before the region, or after it by a caller's mistake: emit() finds out.
  Region other{.first = static_cast<uint32_t>(nodes_.size()), .results = otherwise};
  node.regions = {std::move(region), std::move(other)};
  return results_of(add(std::move(node)), otherwise);
}

Values Formula::loop(Values initial, const std::function<Value(const Values&)>& condition,
                     const std::function<Values(const Values&)>& body) {
  Node node{.opcode = Opcode::while_, .kind = Node::Kind::control};
  for (const Value v : initial) node.operands.push_back(v.node());
  const auto region = [&](const std::function<Values(const Values&)>& f) {
    Region r{.first = static_cast<uint32_t>(nodes_.size())};
    for (const Value v : initial)
      r.params.push_back({this, add({.dtype = dtype(v), .kind = Node::Kind::given})});
    r.results = f(r.params);
    node.regions.push_back(std::move(r));
  };
  region([&](const Values& carried) { return Values{condition(carried)}; });
  region(body);
  return results_of(add(std::move(node)), initial);
}

void Formula::emit_outside(const Region& region) {
  std::set<uint32_t> seen;
  const auto visit = [&](auto&& self, uint32_t id) -> void {
    if (!seen.insert(id).second) return;
    if (id < region.first) {
      emit(id);
      return;
    }
    const Node& node = nodes_[id];
    if (node.kind == Node::Kind::result) return self(self, node.owner);
    for (const uint32_t operand : node.operands) self(self, operand);
    for (const Region& inner : node.regions)
      for (const Value v : inner.results) self(self, v.node());
  };
  for (const Value v : region.results) visit(visit, v.node());
}

ir::BlockId Formula::emit_region(const Region& region) {
  const ir::BlockId before = b_.insertion_block(), block = b_.new_block();
  for (const Value p : region.params)
    nodes_[p.node()].emitted = b_.block_param(block, {.dtype = dtype(p)});
  b_.set_insertion_block(block);
  std::vector<ValueId> yields;
  for (const Value v : region.results) yields.push_back(emit(v.node()));
  b_.op(Opcode::yield, std::move(yields));
  b_.set_insertion_block(before);
  return block;
}

void Formula::emit_control(uint32_t id) {
  Node& node = nodes_[id];  // a deque's elements never move
  if (!node.results.empty()) return;
  std::vector<ValueId> operands;
  for (const uint32_t operand : node.operands) operands.push_back(emit(operand));
  for (const Region& region : node.regions) emit_outside(region);
  std::vector<ir::BlockId> blocks;
  for (const Region& region : node.regions) blocks.push_back(emit_region(region));
  std::vector<ir::Type> types;
  if (node.opcode == Opcode::if_)
    for (const Value v : node.regions[0].results) types.push_back({.dtype = dtype(v)});
  const ir::OpId op =
      b_.op_with_regions(node.opcode, std::move(operands), std::move(blocks), std::move(types));
  node.results = b_.module().ops[op].results;
}

ValueId Formula::emit(uint32_t id) {
  Node& node = nodes_[id];
  if (node.emitted.valid()) return node.emitted;
  switch (node.kind) {
    case Node::Kind::given:
      PK_UNREACHABLE("a region's parameter is used outside of it");
    case Node::Kind::constant:
      return node.emitted = b_.constant({node.dtype, node.attribute});
    case Node::Kind::result:
      emit_control(node.owner);
      return node.emitted = nodes_[node.owner].results[node.attribute];
    case Node::Kind::control:
      PK_UNREACHABLE("control flow has results, and is no value");
    case Node::Kind::op:
      break;
  }
  std::vector<ValueId> operands;
  for (const uint32_t operand : node.operands) operands.push_back(emit(operand));
  return node.emitted = b_.value(node.opcode, std::move(operands), 0, {{.dtype = node.dtype}});
}

ValueId Formula::emit(Value v) { return emit(v.node()); }

Value bits(Value v) { return bitcast(v, v.dtype() == DType::f32 ? DType::i32 : DType::i64); }
Value float_of(Value bits) {
  return bitcast(bits, size_of(bits.dtype()) == 4 ? DType::f32 : DType::f64);
}

Value rare(Value condition, const std::function<Value()>& then, Value otherwise) {
  return condition.formula().branch(condition, [&] { return Values{then()}; }, {otherwise})[0];
}

Value horner(Value x, std::span<const double> c) {
  Value sum = x.like(c.back());
  for (size_t i = c.size() - 1; i-- > 0;) sum = fma(sum, x, c[i]);
  return sum;
}

Pair two_sum(Value x, Value y) {
  const Value sum = x + y;
  const Value y_part = sum - x;
  const Value x_part = sum - y_part;
  return {sum, (x - x_part) + (y - y_part)};
}

Pair fast_two_sum(Value x, Value y) {
  const Value sum = x + y;
  return {sum, y - (sum - x)};
}

Pair two_product(Value x, Value y) {
  const Value product = x * y;
  return {product, fma(x, y, -product)};
}

}  // namespace picokernel::passes::math
