// Tests leave the user's cache alone, also where they run outside of ctest.
#include <cstdlib>

namespace {

[[maybe_unused]] const int kNothingOnDisk = setenv("PICOKERNEL_CACHE_SIZE", "0", 1);

}  // namespace
