// The tracer's interface: arguments, ufuncs by name, casts, stores, results.
#include "frontend/tracer.h"

#include "frontend/state.h"
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
    ir::Type type{.dtype = arg.dtype};
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
  ir::ValueId value = convert(v, m.type(target.id).dtype);
  const size_t rank = m.type(value).shape.size(), target_rank = m.type(target.id).shape.size();
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
  b.write(target.id, value);
  const ir::ValueId storage = root(target.id);
  std::erase_if(versions, [&](const auto& known) { return root(known.first) == storage; });
  stored = true;
  if (m.def(storage) == nullptr) written.insert(storage);
}

Tracer::Tracer(std::string kernel_name, std::span<const ArgSpec> args, const Location& definition)
    : state_(std::make_unique<State>(std::move(kernel_name), args)) {
  state_->at(definition);
}

Tracer::~Tracer() = default;

size_t Tracer::argument_count() const { return state_->args.size(); }

Value Tracer::argument(size_t i) const {
  PK_CHECK(i < state_->args.size());
  const ArgSpec& arg = state_->args[i];
  const bool array = arg.kind == ArgSpec::Kind::array;
  return {.kind = array ? Value::Kind::ref : Value::Kind::value,
          .weak = !array && arg.weak,
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

bool Tracer::known(std::string_view ufunc) { return find_ufunc(ufunc) != nullptr; }

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
    state_->compile_error(
        "out= of type " + std::string(numpy_name(to)) + " cannot take a result of type " +
            std::string(numpy_name(from)),
        {"out= casts within a kind: bool to unsigned to signed integers to floats, never back",
         "hint: give an out= of type " + std::string(numpy_name(from)) +
             ", or store with o[...] = value, which casts"});
  if (shape(v).size() > shape(target).size())
    state_->launch_error("shape " + state_->spell_shape(v) + " of the result does not fit shape " +
                             state_->spell_shape(target) + " of out=",
                         "hint: out= is never broadcast; it has the result's shape");
  state_->store(target, v, "out=");
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

bool Tracer::same_storage(Value a, Value b) const {
  return a.kind == Value::Kind::ref && b.kind == Value::Kind::ref &&
         state_->root(a.id) == state_->root(b.id);
}

ir::Module Tracer::finish(std::span<const Value> returned, const Location& where) {
  State& s = *state_;
  s.at(where);
  if (returned.empty() && !s.stored)
    s.compile_error(
        "kernel `" + s.m.name +
            "` computes nothing: it neither returns a value nor stores into an argument",
        {"hint: return the result, or store it with o[...] = value"});
  std::vector<ir::ValueId> results;
  for (const Value& v : returned)
    results.push_back(v.kind == Value::Kind::literal ? s.convert(v, s.type(v).dtype) : s.read(v));
  s.b.return_values(std::move(results));
  s.renumber_symbols();
  s.simplify_guards();
  ir::verify_or_throw(s.m, "tracing");
  return std::move(s.m);
}

}  // namespace picokernel::frontend
