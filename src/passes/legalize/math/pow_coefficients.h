// Made by tools/fit/pow.py, which has the method; lowest powers first.
#pragma once

namespace picokernel::passes::math {

// log2(1 + x) on [-0.134616, 0.125]: error 9.9e-11, relative to log2(1 + x)
inline constexpr double kPowLog32[] = {
    0x1.ec70a6p-2, -0x1.7154aep-2, 0x1.276a44p-2, -0x1.ec0fep-3, 0x1.b083b2p-3, -0x1.87d85cp-3,
};

// log2((1 + sqrt(x)) / (1 - sqrt(x))) / sqrt(x) on [1b-60, 0.0294373]: error 3.2e-20, absolute
inline constexpr double kPowLog64[] = {
    0x1.2776c50ef9d24p-1, 0x1.a61762a7598a2p-2, 0x1.484b142191d6bp-2, 0x1.0c9a63da0749bp-2,
    0x1.c69f8aac1952p-3,  0x1.87b0e76ec17ddp-3, 0x1.85e7998b60b21p-3,
};

}  // namespace picokernel::passes::math
