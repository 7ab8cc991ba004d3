// Made by tools/fit/log.py, which has the method; lowest powers first.
#pragma once

namespace picokernel::passes::math {

// log(1 + x) on [-0.29289322, 0.41421357]: error 4.2e-09, relative to log(1 + x)
inline constexpr double kLog32[] = {
    -0x1.fffff8p-2, 0x1.55555p-2,   -0x1.000432p-2, 0x1.99a41ap-3,  -0x1.5425c4p-3,
    0x1.226dfcp-3,  -0x1.0f3fa6p-3, 0x1.0860cep-3,  -0x1.38472ap-4,
};

// log2(1 + x) on [-0.29289322, 0.41421357]: error 4.7e-09, relative to log2(1 + x)
inline constexpr double kLog2_32[] = {
    0x1.4aeae8p-26, -0x1.71547p-1, 0x1.ec7094p-2,  -0x1.715ac8p-2, 0x1.277ef4p-2,
    -0x1.eab182p-3, 0x1.a2e68p-3,  -0x1.877adep-3, 0x1.7e0e4cp-3,  -0x1.c367c8p-4,
};

// log10(1 + x) on [-0.29289322, 0.41421357]: error 4.5e-09, relative to log10(1 + x)
inline constexpr double kLog10_32[] = {
    -0x1.5c805ap-27, -0x1.bcb7aap-3, 0x1.287a72p-3,  -0x1.bcbf2ap-4, 0x1.63cf5p-4,
    -0x1.276f5ep-4,  0x1.f88106p-5,  -0x1.d75e4ap-5, 0x1.cb7b2p-5,   -0x1.0f276ap-5,
};

// log(1 + x) on [-0.29289322, 0.41421357]: error 1.8e-07, relative to log(1 + x)
inline constexpr double kLog32Fast[] = {
    -0x1.00006cp-1, 0x1.5558f4p-2, -0x1.ff6974p-3, 0x1.97b1ap-3,
    -0x1.612166p-3, 0x1.4b5ep-3,   -0x1.9d02acp-4,
};

// log2(1 + x) on [-0.29289322, 0.41421357]: error 1.7e-07, relative to log2(1 + x)
inline constexpr double kLog2_32Fast[] = {
    -0x1.feecap-25, -0x1.715528p-1, 0x1.ec7724p-2, -0x1.70e264p-2,
    0x1.25fd22p-2,  -0x1.fdb87ap-3, 0x1.df541ep-3, -0x1.2a937cp-3,
};

// log10(1 + x) on [-0.29289322, 0.41421357]: error 1.7e-07, relative to log10(1 + x)
inline constexpr double kLog10_32Fast[] = {
    -0x1.22cd84p-25, -0x1.bcb886p-3, 0x1.287e64p-3, -0x1.bc2eb4p-4,
    0x1.61ff8cp-4,   -0x1.32de4ep-4, 0x1.2093d2p-4, -0x1.679512p-5,
};

// (log((1 + sqrt(x)) / (1 - sqrt(x))) / sqrt(x) - 2) / x on [1b-60, 0.0294373]: error 4.6e-16,
// relative to (log((1 + sqrt(x)) / (1 - sqrt(x))) / sqrt(x) - 2) / x
inline constexpr double kAtanh64[] = {
    0x1.5555555555558p-1, 0x1.9999999995323p-2, 0x1.2492492deec4ap-2, 0x1.c71c62e68225cp-3,
    0x1.7462b4ac647b3p-3, 0x1.39fe5b2f615d3p-3, 0x1.2b58ad8ffcb43p-3,
};

}  // namespace picokernel::passes::math
