// The tracer's interface: arguments, ufuncs by name, casts, stores, results.
#include "frontend/tracer.h"

#include <algorithm>
#include <set>

#include "frontend/state.h"
#include "ir/pairs.h"
#include "ir/verifier.h"
#include "support/check.h"
#include "support/nearest.h"

namespace picokernel::frontend {
namespace {

std::string join(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

}  // namespace

Tracer::State::State(std::string kernel_name, std::span<const ArgSpec> specs)
    : b(m), args(specs.begin(), specs.end()) {
  m.name = std::move(kernel_name);
  for (const ArgSpec& arg : args) {
    ir::Type type{.dtype = real_of(arg.dtype)};
    if (arg.kind == ArgSpec::Kind::array) {
      type.kind = ir::TypeKind::ref;
      for (const int64_t size : arg.shape) {
        if (size == 1) {
          type.shape.push_back(m.sizes.constant(1));
        } else {
          type.shape.push_back(m.sizes.symbol(static_cast<uint32_t>(symbol_sizes.size())));
          symbol_sizes.push_back(size);
        }
      }
      if (is_complex(arg.dtype)) type.shape.push_back(m.sizes.constant(2));
    }
    b.param(type, arg.name);
  }
}

void Tracer::State::at(const Location& where) {
  if (where == here) return;
  here = where;
  b.set_location(where);
}

void Tracer::State::compile_error(std::string message, std::vector<std::string> notes) const {
  throw CompileError(Diagnostic{.severity = Severity::error,
                                .location = here,
                                .message = std::move(message),
                                .notes = std::move(notes)});
}

void Tracer::State::launch_error(std::string message, std::string hint) const {
  std::string shapes;
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].kind == ArgSpec::Kind::array)
      shapes += (shapes.empty() ? "" : ", ") + args[i].name + " " +
                spell_shape({.kind = Value::Kind::ref, .id = m.params()[i]});
  throw LaunchError(Diagnostic{.severity = Severity::error,
                               .location = here,
                               .message = std::move(message),
                               .notes = {"arguments: " + shapes, std::move(hint)}});
}

void Tracer::State::store(const Value& target, const Value& v, const char* what) {
  if (!broadcast_to(v, target))
    launch_error("shape " + spell_shape(v) + " of the value does not broadcast to shape " +
                     spell_shape(target) + " of " + what,
                 "hint: sizes of the value must be equal to the target's or 1, counted from the "
                 "last dimension");
  if (target.complex) {
    const Complex value = parts(v, m.type(target.id).dtype);  // all of it, before any is written
    write(real(target).id, value.real);
    write(imag(target).id, value.imag);
  } else {
    write(target.id, convert(v, m.type(target.id).dtype));
  }
  const ir::ValueId storage = root(target.id);
  std::erase_if(versions, [&](const auto& known) { return root(known.first) == storage; });
  stored = true;
  if (m.def(storage) == nullptr) written.insert(storage);
}

void Tracer::State::write(ir::ValueId target, ir::ValueId value) {
  const size_t rank = m.type(value).shape.size(), target_rank = m.type(target).shape.size();
  if (rank > target_rank) {
    // Leading dimensions of 1 are dropped, which only a view can do.
    const ir::ValueId whole = b.scratch(m.type(value).dtype, m.type(value).shape);
    b.write(whole, value);
    ir::IndexMap map;
    const SizeId zero = m.sizes.constant(0);
    for (size_t d = 0; d < rank; ++d) {
      const auto source = static_cast<int32_t>(d);
      if (d < rank - target_rank)
        map.picks.push_back({.source = source, .index = zero});
      else
        map.dims.push_back(
            {.source = source, .start = zero, .step = 1, .extent = m.type(value).shape[d]});
    }
    value = b.read(b.view(whole, std::move(map)));
  }
  b.write(target, value);
}

// Integers that only bound slices, or nothing, may be as large as Python's.
void Tracer::State::drop_unused_checks() {
  std::set<ir::ValueId> used;
  const std::vector<ir::OpId>& ops = m.blocks[ir::Module::body()].ops;
  for (auto id = ops.rbegin(); id != ops.rend(); ++id) {
    const ir::Op& op = m.ops[*id];
    const bool acts = op.opcode == ir::Opcode::write || op.opcode == ir::Opcode::return_;
    if (acts || std::ranges::any_of(op.results, [&](ir::ValueId v) { return used.contains(v); }))
      used.insert(op.operands.begin(), op.operands.end());
  }
  std::erase_if(m.checks.integers,
                [&](const ir::CallChecks::Integer& check) { return !used.contains(check.value); });
}

Tracer::Tracer(std::string kernel_name, std::span<const ArgSpec> args, const Location& definition,
               FloatMode floats)
    : state_(std::make_unique<State>(std::move(kernel_name), args)) {
  state_->m.floats = floats;
  state_->at(definition);
}

Tracer::~Tracer() = default;

Value Tracer::argument(size_t i) const {
  PK_CHECK(i < state_->args.size());
  const ArgSpec& arg = state_->args[i];
  const bool array = arg.kind == ArgSpec::Kind::array;
  return {.kind = array ? Value::Kind::ref : Value::Kind::value,
          .weak = arg.weak,
          .complex = is_complex(arg.dtype),
          .id = state_->m.params()[i]};
}

Value Tracer::apply(std::string_view name, std::span<const Value> operands, const Location& where) {
  state_->at(where);
  const Ufunc* u = find_ufunc(name);
  if (u == nullptr) {
    const auto meant = nearest(name, ufunc_names());
    state_->compile_error("`" + std::string(name) + "` cannot be traced",
                          {"these can: " + join(ufunc_names()),
                           meant ? "hint: did you mean `" + std::string(*meant) + "`?"
                                 : "hint: compose it from these"});
  }
  const auto count = static_cast<int>(operands.size());
  const bool open_clip = u->loops == Loops::bounded && count == 2;
  if (count != u->operands && !open_clip)
    state_->compile_error("`" + std::string(name) + "` takes " + std::to_string(u->operands) +
                              " operands, not " + std::to_string(count),
                          {"hint: outputs and options of ufuncs are not operands"});
  return state_->apply(*u, operands);
}

std::vector<std::string_view> Tracer::known_ufuncs() {
  return {ufunc_names().begin(), ufunc_names().end()};
}

int Tracer::arity(std::string_view ufunc) {
  const Ufunc* u = find_ufunc(ufunc);
  PK_CHECK(u != nullptr, ufunc);
  return u->operands;
}

Value Tracer::cast(Value v, DType dtype, const Location& where) {
  state_->at(where);
  if (is_complex(dtype)) return state_->complex_value(state_->parts(v, real_of(dtype)));
  return {.kind = Value::Kind::value, .weak = false, .id = state_->convert(v, dtype)};
}

void Tracer::store(Value target, Value v, const Location& where) {
  state_->at(where);
  PK_CHECK(target.kind == Value::Kind::ref);
  state_->store(target, v, "the target");
}

void Tracer::store_out(Value target, Value v, const Location& where) {
  state_->at(where);
  PK_CHECK(target.kind == Value::Kind::ref);
  const DType from = dtype(v), to = dtype(target);
  if (!same_kind(from, to))
    state_->compile_error("out= of type " + std::string(numpy_name(to)) +
                              " cannot take a result of type " + std::string(numpy_name(from)),
                          {"out= casts within a kind: bool to unsigned to signed integers to "
                           "floats to complex numbers, never back",
                           "hint: give an out= of type " + std::string(numpy_name(from)) +
                               ", or store with o[...] = value, which casts"});
  if (shape(v).size() > shape(target).size())
    state_->launch_error("shape " + state_->spell_shape(v) + " of the result does not fit shape " +
                             state_->spell_shape(target) + " of out=",
                         "hint: out= is never broadcast; it has the result's shape");
  state_->store(target, v, "out=");
}

Value Tracer::real(Value v, const Location& where) {
  state_->at(where);
  return state_->real(v);
}
Value Tracer::imag(Value v, const Location& where) {
  state_->at(where);
  return state_->imag(v);
}

DType Tracer::dtype(Value v) const { return state_->type(v).dtype; }

std::vector<SizeId> Tracer::shape(Value v) const { return state_->shape(v); }

const ir::Module& Tracer::module() const { return state_->m; }

Value Tracer::size(SizeId size, const Location& where) {
  state_->at(where);
  if (const auto constant = state_->m.sizes.as_constant(size))
    return {.kind = Value::Kind::literal, .weak = true, .literal = *constant};
  return {.kind = Value::Kind::value, .weak = true, .id = state_->b.size(size)};
}

ir::Module Tracer::finish(std::span<const Value> returned, const Location& where) {
  State& s = *state_;
  s.at(where);
  if (returned.empty() && !s.stored)
    s.compile_error("kernel `" + s.m.name +
                        "` computes nothing: it stores into no argument, and returns nothing or "
                        "its arguments as they are",
                    {"hint: return the result, or store it with o[...] = value"});
  std::vector<ir::ValueId> results;
  for (const Value& v : returned) {
    const DType type = s.type(v).dtype;
    s.m.result_dtypes.push_back(type);
    if (!is_complex(type)) {
      results.push_back(s.convert(v, type));
    } else if (v.kind == Value::Kind::ref) {
      results.push_back(s.read({.kind = Value::Kind::ref, .id = v.id}));
    } else {
      const Complex parts = s.parts(v, real_of(type));
      results.push_back(ir::make_pairs(s.b, parts.real, parts.imag, s.m.type(parts.real).shape));
    }
  }
  s.b.return_values(std::move(results));
  s.drop_unused_checks();
  s.renumber_symbols();
  s.simplify_guards();
  ir::verify_or_throw(s.m, "tracing");
  return std::move(s.m);
}

}  // namespace picokernel::frontend
