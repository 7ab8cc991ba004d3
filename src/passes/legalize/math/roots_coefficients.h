// Made by tools/fit/roots.py, which has the method; lowest powers first.
#pragma once

namespace picokernel::passes::math {

// x^(-1/3) on [0.5, 4]: error 1.7e-02, relative to x^(-1/3)
inline constexpr double kInverseCbrt32[] = {
    0x1.8efdp0,
    -0x1.7f724p-1,
    0x1.d9b19ap-3,
    -0x1.a4edf2p-6,
};

// x^(-1/3) on [0.5, 4]: error 1.3e-03, relative to x^(-1/3)
inline constexpr double kInverseCbrt64[] = {
    0x1.e499b53800d7p0,   -0x1.ec276347b436dp0,  0x1.b02f9854f9491p0,  -0x1.c64fbb3e91d21p-1,
    0x1.116461a7bbf9bp-2, -0x1.5af7efc8d8edep-5, 0x1.674c462442369p-9,
};

}  // namespace picokernel::passes::math
