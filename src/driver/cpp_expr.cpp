// Traced values of C++: operators hand their operands to the tracer of this thread.
#include <vector>

#include "driver/cpp_trace.h"

namespace picokernel {
namespace {

// The number tells traces apart: a value may outlive its own.
thread_local frontend::Tracer* current = nullptr;
thread_local uint64_t current_number = 0;
thread_local uint64_t last_number = 0;

frontend::Tracer& tracer(const Location& where) {
  if (current == nullptr)
    throw CompileError(
        Diagnostic{.location = where,
                   .message = "a traced value is used outside of its kernel",
                   .notes = {"hint: use pk::Expr only in the function given to pk::kernel"}});
  return *current;
}

}  // namespace

namespace detail {

TraceScope::TraceScope(frontend::Tracer& tracer) : outer_(current), outer_number_(current_number) {
  current = &tracer;
  current_number = ++last_number;
}

TraceScope::~TraceScope() {
  current = outer_;
  current_number = outer_number_;
}

Location to_location(const SourceLocation& where) {
  return {where.file_name(), static_cast<uint32_t>(where.line()),
          static_cast<uint32_t>(where.column())};
}

Expr ExprAccess::make(const frontend::Value& value) {
  Expr e;
  e.literal_ = value.literal;
  e.trace_ = current_number;
  e.id_ = value.id.value;
  e.imag_ = value.imag.value;
  e.weak_ = value.weak;
  e.complex_ = value.complex;
  e.kind_ = static_cast<Expr::Kind>(value.kind);
  return e;
}

frontend::Value ExprAccess::value(const Expr& e, const Location& where) {
  static_assert(static_cast<int>(Expr::Kind::literal) ==
                static_cast<int>(frontend::Value::Kind::literal));
  tracer(where);
  if (e.kind_ != Expr::Kind::literal && e.trace_ != current_number)
    throw CompileError(Diagnostic{
        .location = where,
        .message = "a traced value of another kernel, or of an earlier trace, is used here",
        .notes = {"hint: pass it to the kernel as an argument; keep no pk::Expr between calls"}});
  return {.kind = static_cast<frontend::Value::Kind>(e.kind_),
          .weak = e.weak_,
          .complex = e.complex_,
          .id = ir::ValueId(size_t{e.id_}),
          .imag = ir::ValueId(size_t{e.imag_}),
          .literal = e.literal_};
}

Expr apply(const char* ufunc, std::initializer_list<Operand> operands) {
  const Location where = to_location(operands.begin()->where);
  std::vector<frontend::Value> values;
  for (const Operand& o : operands) values.push_back(ExprAccess::value(o.value, where));
  return ExprAccess::make(tracer(where).apply(ufunc, values, where));
}

}  // namespace detail

using detail::ExprAccess;

DType Expr::dtype() const { return tracer({}).dtype(ExprAccess::value(*this, {})); }

size_t Expr::rank() const { return tracer({}).shape(ExprAccess::value(*this, {})).size(); }

Expr Expr::size(size_t dimension, SourceLocation where) const {
  const Location at = detail::to_location(where);
  const std::vector<SizeId> shape = tracer(at).shape(ExprAccess::value(*this, at));
  if (dimension >= shape.size())
    throw CompileError(Diagnostic{.location = at,
                                  .message = "size(" + std::to_string(dimension) +
                                             ") of an array with " + std::to_string(shape.size()) +
                                             " dimensions",
                                  .notes = {"hint: dimensions count from 0"}});
  return ExprAccess::make(tracer(at).size(shape[dimension], at));
}

Expr Expr::astype(DType dtype, SourceLocation where) const {
  const Location at = detail::to_location(where);
  return ExprAccess::make(tracer(at).cast(ExprAccess::value(*this, at), dtype, at));
}

Expr Expr::at(std::initializer_list<IndexEntry> indices, SourceLocation where) const {
  const Location at = detail::to_location(where);
  using frontend::Index;
  const auto number = [](int64_t v) {
    return frontend::Value{.kind = frontend::Value::Kind::literal, .weak = true, .literal = v};
  };
  std::vector<Index> list;
  for (const IndexEntry& index : indices) {
    if (const Slice* s = std::get_if<Slice>(&index)) {
      list.push_back({.step = s->step});
      if (s->start) list.back().start = number(*s->start);
      if (s->stop) list.back().stop = number(*s->stop);
    } else if (const int64_t* i = std::get_if<int64_t>(&index)) {
      list.push_back({.kind = Index::Kind::integer, .integer = number(*i)});
    } else {
      const bool axis = std::holds_alternative<NewAxis>(index);
      list.push_back({.kind = axis ? Index::Kind::newaxis : Index::Kind::ellipsis});
    }
  }
  return ExprAccess::make(tracer(at).index(ExprAccess::value(*this, at), list, at));
}

Expr Expr::transpose(SourceLocation where) const {
  const Location at = detail::to_location(where);
  const frontend::Value value = ExprAccess::value(*this, at);
  std::vector<size_t> axes;
  for (size_t d = tracer(at).shape(value).size(); d-- > 0;) axes.push_back(d);
  return ExprAccess::make(tracer(at).transpose(value, axes, at));
}

Expr Expr::real(SourceLocation where) const {
  const Location at = detail::to_location(where);
  return ExprAccess::make(tracer(at).real(ExprAccess::value(*this, at), at));
}

Expr Expr::imag(SourceLocation where) const {
  const Location at = detail::to_location(where);
  return ExprAccess::make(tracer(at).imag(ExprAccess::value(*this, at), at));
}

void Out::store(Operand value) {
  const Location at = detail::to_location(value.where);
  const frontend::Value target = ExprAccess::value(array_, at);
  tracer(at).store(target, ExprAccess::value(value.value, at), at);
}

}  // namespace picokernel
