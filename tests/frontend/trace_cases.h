// Helpers of the tracer's tests: arguments in a line, operators on traced values.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "frontend/tracer.h"

namespace picokernel::frontend::testing {

inline ArgSpec array(DType dtype, std::string name, std::vector<int64_t> shape) {
  return {.dtype = dtype, .name = std::move(name), .shape = std::move(shape)};
}
inline ArgSpec scalar(DType dtype, std::string name) {
  return {.kind = ArgSpec::Kind::scalar, .dtype = dtype, .name = std::move(name)};
}
inline ArgSpec python_int(std::string name) {
  return {
      .kind = ArgSpec::Kind::scalar, .dtype = DType::i64, .weak = true, .name = std::move(name)};
}
inline ArgSpec python_float(std::string name) {
  return {
      .kind = ArgSpec::Kind::scalar, .dtype = DType::f64, .weak = true, .name = std::move(name)};
}

inline Value literal(Literal value) {
  return {.kind = Value::Kind::literal, .weak = true, .literal = value};
}

// A trace in the making; every use is on the next line of the user's file k.py.
class Trace {
 public:
  explicit Trace(std::vector<ArgSpec> args) : tracer_("f", args, {"k.py", 1, 1}) {}

  Value operator[](size_t i) const { return tracer_.argument(i); }
  template <class... Values>
  Value call(std::string_view ufunc, Values... values) {
    const std::vector<Value> operands{values...};
    return tracer_.apply(ufunc, operands, next());
  }
  Value cast(Value v, DType dtype) { return tracer_.cast(v, dtype, next()); }
  void store(Value target, Value v) { tracer_.store(target, v, next()); }
  void store_out(Value target, Value v) { tracer_.store_out(target, v, next()); }
  Value size(Value v, size_t dimension) {
    return tracer_.size(tracer_.shape(v)[dimension], next());
  }
  Tracer& tracer() { return tracer_; }
  ir::Module finish(const std::vector<Value>& results = {}) {
    return tracer_.finish(results, next());
  }

 private:
  Location next() { return {"k.py", ++line_, 5}; }

  Tracer tracer_;
  uint32_t line_ = 1;
};

}  // namespace picokernel::frontend::testing
