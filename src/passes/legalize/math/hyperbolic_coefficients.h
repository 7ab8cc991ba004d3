// Made by tools/fit/hyperbolic.py, which has the method; lowest powers first.
#pragma once

namespace picokernel::passes::math {

// sinh(x) on [1b-20, 0.34658]: error 1.3e-08, relative to sinh(x)
inline constexpr double kSinh32[] = {
    0x1.5554bp-3,
    0x1.122792p-7,
};

// sinh(x) on [1b-20, 0.34658]: error 2.7e-19, relative to sinh(x)
inline constexpr double kSinh64[] = {
    0x1.5555555555559p-3,  0x1.111111110f658p-7,  0x1.a01a01b001273p-13,
    0x1.71ddf817ce532p-19, 0x1.af5f19abc7023p-26,
};

// cosh(x) on [1b-20, 0.34658]: error 1.0e-10, relative to cosh(x)
inline constexpr double kCosh32[] = {
    0x1p-1,
    0x1.5554e4p-5,
    0x1.6d5148p-10,
};

// cosh(x) on [1b-20, 0.34658]: error 3.4e-18, relative to cosh(x)
inline constexpr double kCosh64[] = {
    0x1.000000000000bp-1,  0x1.555555555026bp-5,  0x1.6c16c1853bec3p-10,
    0x1.a0199796b07c8p-16, 0x1.28af6fe5b221ap-22,
};

// x^3 / (x - tanh(x)) on [0.5, 1]: error 3.4e-08, absolute
inline constexpr double kTanh32[] = {
    0x1.80000ap1,
    0x1.333296p0,
    -0x1.74d396p-8,
    0x1.d81ff4p-13,
};

// x^3 / (x - tanh(x)) on [0.5, 1]: error 1.6e-18, absolute
inline constexpr double kTanh64[] = {
    0x1.8000000000022p1,    0x1.3333333332e65p0,    -0x1.767dce40f32b2p-8,
    0x1.0a4e14dfd629ap-12,  -0x1.997c7fb35cec6p-17, 0x1.416f6f6c94755p-21,
    -0x1.fafe668903f3dp-26, 0x1.871490145b39fp-30,  -0x1.e4cb1270f5b6bp-35,
};

}  // namespace picokernel::passes::math
