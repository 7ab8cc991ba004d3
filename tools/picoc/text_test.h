// Text tests: IR in, exact text out.
//
// A .pk file holds cases separated by a line `// ----`. A case begins with `// test: KIND`:
//   pass NAME...: runs the passes; the case ends with `// expect:` and the exact result, each line
//   behind `// `.
//   emit TARGET: the same with what the target prints.
//   check [TARGET]: every `// error: TEXT` stands on the line where that error is reported, by the
//   parser, the verifier or the target; there are no other errors.
//   round-trip: print(parse(x)) == x.
//   run: lines `// run: @f(1, 2) == 3`, on the interpreter and on every live backend.
#pragma once

#include <string>
#include <vector>

namespace picoc {

/// Prints what failed and a closing line `N passed, M failed`. Gives the exit status.
int run_tests(const std::vector<std::string>& paths, bool bless);

}  // namespace picoc
