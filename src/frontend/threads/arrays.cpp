// Elements: indices, bounds, loads and stores; memory of blocks and threads.
#include <algorithm>
#include <array>
#include <numeric>

#include "frontend/threads/compiler.h"
#include "support/check.h"

namespace picokernel::frontend::threads {

using ir::Opcode;
using ir::ValueId;

ValueId Compiler::i64(int64_t v) { return b_.constant(ir::Scalar::of(v)); }

std::vector<Thing> Compiler::indices(const Node& n) {
  Thing t = expression(n);
  if (t.kind == Thing::Kind::tuple) return std::move(t.items);
  return {std::move(t)};
}

// Negative indices count from the end, once. The select is not there where none is possible.
ValueId Compiler::in_bounds(const Array& a, size_t d, const Value& index, const Node& where) {
  ValueId at = as_i64(index, where, "an index");
  const ValueId size = a.shape[d];
  const Range range = ranges_.of(at);
  if (size.valid() && range.low < 0) {
    const ValueId from_end = b_.value(Opcode::add, {at, size});
    if (range.high < 0) {
      at = from_end;
    } else {
      const ValueId zero = i64(0);
      const ValueId negative = b_.value(Opcode::lt, {at, zero});
      at = b_.value(Opcode::select, {negative, from_end, at});
    }
  }
  if (options_.checks && size.valid()) b_.op(Opcode::check_index, {a.pointer, at, size}, a.axes[d]);
  return at;
}

// Numbers fix their dimensions, slices keep them, and so do those without an index.
Array Compiler::at_index(const Array& a, std::span<const Thing> indices, const Node& where) {
  if (indices.size() > a.shape.size())
    error(where,
          std::to_string(indices.size()) + " indices for an array of " +
              std::to_string(a.shape.size()) + " dimensions",
          {"an element has an index for each dimension", "hint: x[i, j] of a 2-d array"});
  Array part{.pointer = a.pointer, .offset = a.offset, .inside = a.inside};
  for (size_t d = 0; d < a.shape.size(); ++d) {
    if (d >= indices.size() || indices[d].kind == Thing::Kind::slice) {
      part.shape.push_back(a.shape[d]);
      part.strides.push_back(a.strides[d]);
      part.axes.push_back(a.axes[d]);
      if (d < indices.size()) keep_slice(a, d, indices[d], part, where);
      continue;
    }
    const ValueId at = in_bounds(a, d, number(indices[d], where, "an index"), where);
    if (options_.guards && !options_.checks && a.shape[d].valid()) {
      const ValueId inside = guard(a, d, at, where);
      part.inside = part.inside.valid() ? b_.value(Opcode::and_, {part.inside, inside}) : inside;
    }
    advance(part, at, a.strides[d]);
  }
  return part;
}

void Compiler::advance(Array& a, ValueId by, ValueId stride) {
  if (stride.valid()) by = b_.value(Opcode::mul, {by, stride});
  a.offset = a.offset.valid() ? b_.value(Opcode::add, {a.offset, by}) : by;
}

// As Python's slices: bounds beyond the ends are the ends.
void Compiler::keep_slice(const Array& a, size_t d, const Thing& slice, Array& part,
                          const Node& where) {
  const auto given = [&](size_t i) { return slice.items[i].kind != Thing::Kind::nothing; };
  const std::optional<int64_t> step =
      given(2) ? constant(number(slice.items[2], where, "a step")) : 1;
  if (!step || *step == 0)
    error(where, "the step of a slice is not a constant other than 0",
          {"steps are literals, globals and closure variables", "hint: write a loop"});
  if (!given(0) && !given(1) && *step == 1) return;
  const ValueId size = a.shape[d], zero = i64(0);
  if (!size.valid())
    error(where, "a slice of dynamic shared memory, whose size is not known in the kernel",
          {"the launch gives it", "hint: compute the indices: t[first + i]"});
  const ValueId last = b_.value(Opcode::sub, {size, i64(1)});
  const ValueId low = *step > 0 ? zero : i64(-1), high = *step > 0 ? size : last;
  const auto bound = [&](size_t i, ValueId absent) {
    if (!given(i)) return absent;
    ValueId at = as_i64(number(slice.items[i], where, "a bound"), where, "a bound of a slice");
    if (ranges_.of(at).low < 0) {
      const ValueId negative = b_.value(Opcode::lt, {at, zero});
      const ValueId from_end = b_.value(Opcode::add, {at, size});
      at = b_.value(Opcode::select, {negative, from_end, at});
    }
    return b_.value(Opcode::minimum, {b_.value(Opcode::maximum, {at, low}), high});
  };
  const ValueId start = bound(0, *step > 0 ? zero : last);
  const ValueId stop = bound(1, *step > 0 ? size : i64(-1));
  const ValueId way =
      *step > 0 ? b_.value(Opcode::sub, {stop, start}) : b_.value(Opcode::sub, {start, stop});
  const int64_t stride = *step > 0 ? *step : -*step;
  ValueId count = way;
  if (stride != 1)
    count =
        b_.value(Opcode::floordiv, {b_.value(Opcode::add, {way, i64(stride - 1)}), i64(stride)});
  count = b_.value(Opcode::maximum, {count, zero});
  ranges_.know(count, {0, std::numeric_limits<int64_t>::max() / 2});
  advance(part, start, a.strides[d]);
  part.shape.back() = count;
  if (*step == 1) return;
  const ValueId by = i64(*step);
  part.strides.back() = a.strides[d].valid() ? b_.value(Opcode::mul, {a.strides[d], by}) : by;
}

// x[1:3] = value: a number, or an array of as many dimensions, element by element.
void Compiler::fill(const Array& to, const Thing& value, const Node& where) {
  if (to.shape.empty()) return store(to, {}, value, where);
  const bool array = value.kind == Thing::Kind::array;
  if (array && value.array.shape.size() != to.shape.size())
    error(where,
          "an array of " + std::to_string(value.array.shape.size()) +
              " dimensions is stored into one of " + std::to_string(to.shape.size()),
          {"a number goes to all elements, an array of as many dimensions to each its own",
           "hint: write a loop"});
  if (!to.shape[0].valid())
    error(where, "dynamic shared memory is stored to as a whole",
          {"its size is not known in the kernel", "hint: write a loop"});
  const ir::BlockId body = b_.new_block();
  const ValueId index = b_.block_param(body, {.dtype = DType::i64});
  ranges_.know(index, {0, std::numeric_limits<int64_t>::max() - 1});
  in_block(body, [&] {
    const Thing at = threads::of({.id = index});
    const Array inner = at_index(to, std::span(&at, 1), where);
    fill(inner, array ? element(value.array, std::span(&at, 1), where) : value, where);
  });
  const ValueId zero = i64(0), one = i64(1);
  b_.op_with_regions(Opcode::for_, {zero, to.shape[0], one}, {body});
}

ValueId Compiler::offset(const Array& a) { return a.offset.valid() ? a.offset : i64(0); }

Thing Compiler::element(const Array& a, std::span<const Thing> indices, const Node& where) {
  at(where);
  Array part = at_index(a, indices, where);
  if (!part.shape.empty()) return {.kind = Thing::Kind::array, .array = std::move(part)};
  at(where);
  const ValueId offset = this->offset(part);
  return threads::of({.id = where_inside(part, state_.m.type(part.pointer).dtype,
                                         [&] { return b_.load(part.pointer, offset); })});
}

void Compiler::store(const Array& a, std::span<const Thing> indices, const Thing& value,
                     const Node& where) {
  at(where);
  const Array part = at_index(a, indices, where);
  if (!part.shape.empty()) {
    if (std::ranges::none_of(indices, [](const Thing& i) { return i.kind == Thing::Kind::slice; }))
      error(where,
            "an element of " + std::to_string(a.shape.size()) + " dimensions is stored to by " +
                std::to_string(indices.size()) + " indices",
            {"a slice stands for all elements of a dimension",
             "hint: give an index or a slice for each dimension: x[i, :] = 0"});
    return fill(part, value, where);
  }
  const Value v = number(value, where, "what is stored");
  at(where);
  const ValueId converted = state_.convert(v, state_.m.type(part.pointer).dtype);
  const ValueId offset = this->offset(part);
  if (!part.inside.valid()) return b_.store(converted, part.pointer, offset);
  const ir::BlockId yes = b_.new_block(), no = b_.new_block();
  in_block(yes, [&] { b_.store(converted, part.pointer, offset); });
  b_.op_with_regions(Opcode::if_, {part.inside}, {yes, no});
}

// In the function's own block: one memory, however often the place is passed.
Array Compiler::memory(ir::OpId allocation, std::span<const int64_t> shape) {
  Array a{.pointer = state_.m.ops[allocation].results[0]};
  a.strides.resize(shape.size());
  a.axes.resize(shape.size());
  std::iota(a.axes.begin(), a.axes.end(), size_t{0});
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (d + 1 < shape.size()) a.strides[d] = i64(stride);
    stride *= shape[d];
  }
  for (const int64_t size : shape) a.shape.push_back(size == 0 ? ValueId{} : i64(size));
  return a;
}

// simt.shared.array(shape, dtype), simt.local.array(shape, dtype)
Thing Compiler::own_memory(const Node& n, bool shared) {
  const Call call(n);
  const std::string name = shared ? "simt.shared.array" : "simt.local.array";
  std::array<const Node*, 2> arguments{};
  for (size_t i = 0; i < call.arguments.size() && i < 2; ++i) arguments[i] = &call.arguments[i];
  for (const Node& k : call.keywords)
    if (k[0].text == "shape" || k[0].text == "dtype")
      arguments[k[0].text == "dtype"] = &k.fields[1];
  if (arguments[0] == nullptr || arguments[1] == nullptr ||
      call.arguments.size() + call.keywords.size() != 2)
    error(n, "`" + name + "` takes a shape and a dtype",
          {"hint: " + name + "(shape=(16, 16), dtype=simt.float32)"});
  std::vector<int64_t> shape;
  int64_t count = 1;
  for (const Thing& size : indices(*arguments[0])) {
    const Value v = number(size, n, "a size");
    const std::optional<int64_t> known = constant(v);
    const bool dynamic = shared && known == 0;
    if (!known || *known < 0 || (*known == 0 && !dynamic) ||
        __builtin_mul_overflow(count, *known, &count) || count > (int64_t{1} << 24))
      error(*arguments[0], "the shape of `" + name + "` is not made of constants from 1 up",
            {"sizes are literals, globals and closure variables, and what is computed of them",
             "hint: " + std::string(shared ? "a shape of 0 has the size that the launch gives: "
                                             "kernel[grid, block, stream, bytes]"
                                           : "choose the largest size that may be needed")});
    shape.push_back(*known);
  }
  if (shape.size() > 1 && count == 0)
    error(*arguments[0], "dynamic shared memory has one dimension",
          {"hint: compute the index: t[i * width + j]"});
  const Thing type = expression(*arguments[1]);
  if (type.kind != Thing::Kind::dtype || is_complex(type.dtype))
    error(*arguments[1], "the dtype of `" + name + "` is " + describe(type),
          {"it is one of bool, integers and floats", "hint: dtype=simt.float32"});
  Thing t{.kind = Thing::Kind::array};
  at(n);
  in_block(ir::Module::body(), [&] {
    const ir::Type pointer{.kind = ir::TypeKind::ptr,
                           .dtype = type.dtype,
                           .space = shared ? ir::Space::shared : ir::Space::local};
    std::vector<ValueId> operands;
    if (!shared) operands.push_back(i64(count));
    const ir::OpId op = b_.op(shared ? Opcode::shared : Opcode::alloc, operands,
                              shared ? static_cast<uint64_t>(count) : 0, {pointer});
    t.array = memory(op, shape);
  });
  return t;
}

}  // namespace picokernel::frontend::threads
