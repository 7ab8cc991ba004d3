// Made by tools/fit/erf.py, which has the method; lowest powers first.
#pragma once

namespace picokernel::passes::math {

// erf(x) on [1b-20, 1]: error 1.5e-09, relative to erf(x)
inline constexpr double kErf32[] = {
    0x1.06eba8p-3, -0x1.81273ep-2,  0x1.ce2cf2p-4,  -0x1.b7f88cp-6,
    0x1.540172p-8, -0x1.a3d812p-11, 0x1.4917a4p-14,
};

// erf(x) on [1b-20, 1]: error 1.1e-17, relative to erf(x)
inline constexpr double kErf64[] = {
    0x1.06eba8214db69p-3,  -0x1.812746b0379fdp-2,  0x1.ce2f21a04360fp-4,  -0x1.b82ce312ab0a3p-6,
    0x1.565bcd126d6edp-8,  -0x1.c02db49229b1fp-11, 0x1.f9a3342152cf7p-14, -0x1.f4d31d85b4f84p-17,
    0x1.b9ed71fb0fe73p-20, -0x1.5f8e4d2412c7p-23,  0x1.fc0d5c2f29023p-27, -0x1.452ac54ffb859p-30,
    0x1.25ec3cb74e2efp-34,
};

// log2(erfc(x)) on [1, 4]: error 1.5e-09, relative to 1 / erfc(x)
inline constexpr double kLog2Erfc32[] = {
    -0x1.0b296p-11, -0x1.a04018p0,  -0x1.d76de6p-1, -0x1.30723ep-3,
    0x1.01b8d2p-5,  -0x1.15f67cp-8, 0x1.18c62p-12,
};

// log2(erfc(x)) on [1, 6]: error 9.5e-18, relative to 1 / erfc(x)
inline constexpr double kLog2Erfc64[] = {
    -0x1.8d80c7c537fd3p-21, -0x1.a0be06964bdecp0,   -0x1.d6436eb802baep-1, -0x1.2f72c060b6accp-3,
    0x1.c0d29e0a10107p-6,   0x1.38c926100a066p-11,  -0x1.6add4f49e68b8p-9, 0x1.245b3e74f9744p-10,
    -0x1.9d21d7dc272dbp-13, -0x1.d8a46b9d69ed5p-16, 0x1.10b7e1bdcb0c3p-15, -0x1.9f509f1673c9ep-17,
    0x1.99867d3a43ba5p-19,  -0x1.1e43270833f85p-21, 0x1.1ca3262bb3d62p-24, -0x1.81b0b9afa89b2p-28,
    0x1.40817754e40d1p-32,  -0x1.edf40ed54b3ebp-38,
};

// (1 + 1.625 * (2.53125 * (1 + x) / (1 - x))) * exp((2.53125 * (1 + x) / (1 - x))^2) *
// erfc((2.53125 * (1 + x) / (1 - x))) on [(0.5 - 2.53125) / (0.5 + 2.53125), (10.1 - 2.53125) /
// (10.1 + 2.53125)]: error 1.9e-09, absolute
inline constexpr double kErfc32[] = {
    0x1.10ef92p0,  -0x1.5b281ep-3,  -0x1.f0013p-6,  0x1.a65fccp-4,  -0x1.3c8bcep-4,
    0x1.c6efc2p-6, -0x1.691342p-11, -0x1.b72e6ap-9, 0x1.116c68p-11, 0x1.a794aep-12,
};

// (1 + 1.625 * (2.552490234375 * (1 + x) / (1 - x))) * exp((2.552490234375 * (1 + x) / (1 - x))^2)
// * erfc((2.552490234375 * (1 + x) / (1 - x))) on [(0.5 - 2.552490234375) / (0.5 + 2.552490234375),
// (27.3 - 2.552490234375) / (27.3 + 2.552490234375)]: error 1.2e-18, absolute
inline constexpr double kErfc64[] = {
    0x1.10c11f356f32dp0,    -0x1.5ba86049ffe16p-3, -0x1.cf5372291b1e9p-6,  0x1.a21002ae17196p-4,
    -0x1.3f5e1f4526817p-4,  0x1.dbc34e05265fdp-6,  -0x1.716e654e80232p-10, -0x1.b22b0a5f9164bp-9,
    0x1.7eee6cc6b44f5p-11,  0x1.c28e03d991d8bp-12, -0x1.12b655f53a6aap-13, -0x1.3fcdf613ee895p-14,
    0x1.33edb93a9d16cp-16,  0x1.14b13d4b203e4p-16, -0x1.2ed743413ff8ep-20, -0x1.e4940742ffc4bp-19,
    -0x1.2a974d27d3bc6p-21, 0x1.68667dbcf362dp-21, 0x1.4a540ba21b49bp-22,  -0x1.63d74dd366d74p-24,
    -0x1.7e0b672822486p-24, 0x1.d6a52797bc935p-29, 0x1.c677a4b36eba8p-27,
};

}  // namespace picokernel::passes::math
