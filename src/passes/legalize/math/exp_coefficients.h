// Made by tools/fit/exp.py, which has the method; lowest powers first.
#pragma once

namespace picokernel::passes::math {

// exp(x) on [-0.34658, 0.34658]: error 3.3e-09, relative to exp(x)
inline constexpr double kExp32[] = {
    0x1.fffffap-2, 0x1.555492p-3, 0x1.555a26p-5, 0x1.12397cp-7, 0x1.694c82p-10,
};

// exp(x) on [-0.34658, 0.34658]: error 1.0e-07, relative to exp(x)
inline constexpr double kExp32Fast[] = {
    0x1.fffdfcp-2,
    0x1.5557acp-3,
    0x1.572a14p-5,
    0x1.1063eap-7,
};

// exp(x) on [-0.34658, 0.34658]: error 3.8e-18, relative to exp(x)
inline constexpr double kExp64[] = {
    0x1.000000000000ap-1,  0x1.55555555554fep-3,  0x1.55555555506bfp-5,  0x1.1111111126b36p-7,
    0x1.6c16c18475fabp-10, 0x1.a01a012fed2dfp-13, 0x1.a019996298f49p-16, 0x1.71df18f7a852cp-19,
    0x1.28adf8e801f4ap-22, 0x1.ad92d1d696276p-26,
};

// exp(x) on [-0.34658, 0.34658]: error 2.9e-16, relative to exp(x)
inline constexpr double kExp64Fast[] = {
    0x1.ffffffffffed2p-2,  0x1.55555555507c2p-3,  0x1.5555555589108p-5,
    0x1.11111125b4887p-7,  0x1.6c16c0c8265c3p-10, 0x1.a0198d55fdddfp-13,
    0x1.a01b7c63e4e16p-16, 0x1.72e91da0c3dcep-19, 0x1.270799e2479b9p-22,
};

// 2^x on [-0.5, 0.5]: error 3.6e-09, relative to 2^x
inline constexpr double kExp2_32[] = {
    0x1.62e43p-1, 0x1.ebfbd8p-3, 0x1.c6af76p-5, 0x1.3b30ap-7, 0x1.5f0b82p-10, 0x1.3fa206p-13,
};

// 2^x on [-0.5, 0.5]: error 9.5e-08, relative to 2^x
inline constexpr double kExp2_32Fast[] = {
    0x1.62e42ap-1, 0x1.ebf9bap-3, 0x1.c6b69ap-5, 0x1.3ceaf8p-7, 0x1.5bfd58p-10,
};

// 2^x on [-0.5, 0.5]: error 5.7e-18, relative to 2^x
inline constexpr double kExp2_64[] = {
    0x1.62e42fefa39efp-1,  0x1.ebfbdff82c5a6p-3,  0x1.c6b08d704a12cp-5,  0x1.3b2ab6fb9fda6p-7,
    0x1.5d87fe789e96fp-10, 0x1.4309130f6cbdcp-13, 0x1.ffcbfc6685f14p-17, 0x1.62bfc6596b96dp-20,
    0x1.b52522bc12186p-24, 0x1.e61d4332c1a5fp-28, 0x1.e97317a3287c3p-32,
};

// 2^x on [-0.5, 0.5]: error 2.2e-16, relative to 2^x
inline constexpr double kExp2_64Fast[] = {
    0x1.62e42fefa3a12p-1,  0x1.ebfbdff82c431p-3,  0x1.c6b08d703e18ep-5,  0x1.3b2ab6fbd6dbep-7,
    0x1.5d87fe9b8d2a1p-10, 0x1.4309126be05fcp-13, 0x1.ffcb58ce7f1dbp-17, 0x1.62c147ede68b4p-20,
    0x1.b671af6e0aa22p-24, 0x1.e3a8909584a0dp-28,
};

// expm1(x) on [-0.34658, 0.34658]: error 1.4e-08, relative to expm1(x)
inline constexpr double kExpm1_32[] = {
    0x1.fffffep-2, 0x1.5554bp-3, 0x1.555716p-5, 0x1.12278ep-7, 0x1.6b7334p-10,
};

// expm1(x) on [-0.34658, 0.34658]: error 3.0e-19, relative to expm1(x)
inline constexpr double kExpm1_64[] = {
    0x1p-1,
    0x1.5555555555559p-3,
    0x1.555555555554dp-5,
    0x1.111111110f65ap-7,
    0x1.6c16c16c1aaf7p-10,
    0x1.a01a01afffe71p-13,
    0x1.a01a018e10e9ep-16,
    0x1.71ddf81bab07bp-19,
    0x1.27e5133a98adbp-22,
    0x1.af5f1224a4de6p-26,
    0x1.1f1a29304f23p-29,
};

}  // namespace picokernel::passes::math
