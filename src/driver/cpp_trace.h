// What the C++ front end shares between its files: the trace that this thread is in.
#pragma once

#include <picokernel/expr.h>

#include "frontend/tracer.h"

namespace picokernel::detail {

// Makes a tracer the one that operators on this thread build into. Scopes nest: a kernel may be
// called, and so traced, while another one is.
class TraceScope {
 public:
  explicit TraceScope(frontend::Tracer& tracer);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  frontend::Tracer* outer_;
  uint64_t outer_number_;
};

struct ExprAccess {
  static Expr make(const frontend::Value& value);
  /// Throws CompileError if the value is of another trace, or of one that has ended.
  static frontend::Value value(const Expr& expr, const Location& where);
  static Out make_out(const Expr& array) { return Out(array); }
  static const Expr& array(const Out& out) { return out.array_; }
};

Location to_location(const SourceLocation& where);

}  // namespace picokernel::detail
