// Made by tools/fit/trigonometric.py, which has the method; lowest powers first.
#pragma once

namespace picokernel::passes::math {

// sin(x) on [1e-6, 0.7857]: error 2.0e-10, relative to sin(x)
inline constexpr double kSin32[] = {
    -0x1.555556p-3,
    0x1.111164p-7,
    -0x1.a04862p-13,
    0x1.77e01p-19,
};

// cos(x) on [1e-6, 0.7857]: error 1.2e-10, relative to cos(x)
inline constexpr double kCos32[] = {
    -0x1p-1,
    0x1.55554ap-5,
    -0x1.6c0c2ap-10,
    0x1.99e906p-16,
};

// sin(x) on [1e-6, 1.5711]: error 6.2e-09, relative to sin(x)
inline constexpr double kHalfSin32[] = {
    -0x1.55554cp-3,
    0x1.110edap-7,
    -0x1.9f70eep-13,
    0x1.5dc8c8p-19,
};

// tan(x) on [1e-6, 0.7857]: error 1.3e-09, relative to tan(x)
inline constexpr double kTan32[] = {
    0x1.55556p-2,  0x1.110d9ep-3,  0x1.bad9cap-5, 0x1.5cc02p-6,
    0x1.62d0c4p-7, 0x1.97605ep-14, 0x1.1e9d12p-8,
};

// their sum is pi/2
inline constexpr double kHalfPi32[] = {
    0x1.921fb4p0,
    0x1.444p-24,
    0x1.68c234p-39,
};

// their sum is pi
inline constexpr double kPi32[] = {
    0x1.921fb4p1,
    0x1.4442dp-23,
    0x1.846988p-47,
};

// 2/pi, 11 zero bits and then those behind the point
inline constexpr uint64_t kTwoOverPi32[] = {
    0x145f306dc9c882,
    0xa53f84eafa3ea69b,
    0xb81b6c52b3278872,
    0x83fca2c757bd778,
};

// sin(x) on [1e-8, 0.7857]: error 1.2e-19, relative to sin(x)
inline constexpr double kSin64[] = {
    -0x1.5555555555555p-3,  0x1.111111111108bp-7,  -0x1.a01a01a006d9ep-13, 0x1.71de3a401cd33p-19,
    -0x1.ae643d4a573e6p-26, 0x1.6114ab3a9cc48p-33, -0x1.a55fd283039dp-41,
};

// cos(x) on [1e-8, 0.7857]: error 6.2e-20, relative to cos(x)
inline constexpr double kCos64[] = {
    -0x1p-1,
    0x1.555555555554ap-5,
    -0x1.6c16c16c14e44p-10,
    0x1.a01a019c67a27p-16,
    -0x1.27e4f7d815582p-22,
    0x1.1ee9cc0e4aabfp-29,
    -0x1.8f9eff3ea17e4p-37,
};

// sin(x) on [1e-8, 1.5711]: error 2.9e-19, relative to sin(x)
inline constexpr double kHalfSin64[] = {
    -0x1.5555555555555p-3,  0x1.11111111110c9p-7,  -0x1.a01a01a014eb2p-13, 0x1.71de3a52aa7e7p-19,
    -0x1.ae6454d937cedp-26, 0x1.6123ce43be595p-33, -0x1.ae43d855f406ap-41, 0x1.883b96638c0bp-49,
};

// tan(x) on [1e-8, 0.7857]: error 9.3e-19, relative to tan(x)
inline constexpr double kTan64[] = {
    0x1.555555555555ep-2,  0x1.11111111105fap-3,   0x1.ba1ba1babbe91p-5,  0x1.664f485e025e4p-6,
    0x1.226e3a61cea84p-7,  0x1.d6d2ed4a6a95dp-9,   0x1.7db13a25569b3p-10, 0x1.34bf93397b53p-11,
    0x1.fefb0efe9e2adp-13, 0x1.5f89192c2bb6ep-14,  0x1.17f79ec00bd93p-14, -0x1.a3d79c4a0f5aep-16,
    0x1.93a658ee98e7p-15,  -0x1.92e373f7736f5p-16, 0x1.46d5e13ab61bp-17,
};

// their sum is pi/2
inline constexpr double kHalfPi64[] = {
    0x1.921fb54442d18p0,
    0x1.1a62633145c06p-54,
    0x1.c1cd129024e08p-107,
};

// their sum is pi
inline constexpr double kPi64[] = {
    0x1.921fb54442d18p1,
    0x1.1a62633145c06p-53,
    0x1.c1cd129024e08p-106,
};

// 2/pi, 28 zero bits and then those behind the point
inline constexpr uint64_t kTwoOverPi64[] = {
    0xa2f9836e4,        0xe441529fc2757d1f, 0x534ddc0db6295993, 0xc439041fe5163abd,
    0xebbc561b7246e3a4, 0x24dd2e006492eea0, 0x9d1921cfe1deb1cb, 0x129a73ee88235f52,
    0xebb4484e99c7026b, 0x45f7e413991d6398, 0x35339f49c845f8bb, 0xdf9283b1ff897ffd,
    0xe05980fef2f118b5, 0xa0a6d1f6d367ecf2, 0x7cb09b74f463f669, 0xe5fea2d7527bac7e,
    0xbe5f17b3d0739f78, 0xa5292ea6bfb5fb11, 0xf8d5d0856033046f,
};

}  // namespace picokernel::passes::math
