// Made by tools/fit/inverse_trigonometric.py, which has the method; lowest powers first.
#pragma once

namespace picokernel::passes::math {

// asin(x) on [1e-6, 0.5]: error 4.9e-09, relative to asin(x)
inline constexpr double kAsin32[] = {
    0x1.5555c8p-3, 0x1.330206p-4, 0x1.747b72p-5, 0x1.8c415ap-6, 0x1.5959aap-5,
};

// atan(x) on [1e-6, 1.01]: error 3.0e-09, relative to atan(x)
inline constexpr double kAtan32[] = {
    -0x1.55553cp-2, 0x1.999146p-3,  -0x1.2418b6p-3, 0x1.c02f68p-4,   -0x1.56dcb4p-4,
    0x1.d5caccp-5,  -0x1.f41f78p-6, 0x1.596b5ep-7,  -0x1.bf0b42p-10,
};

// asin(x) on [1e-8, 0.5]: error 1.5e-17, relative to asin(x)
inline constexpr double kAsin64[] = {
    0x1.555555555539p-3,  0x1.333333336e80fp-4, 0x1.6db6db427a4f8p-5,  0x1.f1c72c38fb343p-6,
    0x1.6e89f44019769p-6, 0x1.1c6be1a687d83p-6, 0x1.c6fdc1aa99fb6p-7,  0x1.8ec2fca664948p-7,
    0x1.abcf5cd3c582p-8,  0x1.3ff4a993e8f23p-6, -0x1.09d328395e2acp-6, 0x1.056d6c8369ac4p-5,
};

// atan(x) on [1e-8, 1]: error 4.6e-18, relative to atan(x)
inline constexpr double kAtan64[] = {
    -0x1.5555555555526p-2, 0x1.99999999955b4p-3,  -0x1.249249237f57dp-3,  0x1.c71c717fcf76cp-4,
    -0x1.745d11ae74c4cp-4, 0x1.3b13669a29c9ap-4,  -0x1.110e5126fa3b8p-4,  0x1.e1bba66bedb2p-5,
    -0x1.ae5e72bfe9e67p-5, 0x1.82dad798fe0acp-5,  -0x1.59a3ff1e0359cp-5,  0x1.2c2e5cb19de41p-5,
    -0x1.e9fa0d38f10fep-6, 0x1.683cc8eceb055p-6,  -0x1.c78fcc1616993p-7,  0x1.d7b925caa4892p-8,
    -0x1.7a3998a3a2487p-9, 0x1.b3fac8704d47dp-11, -0x1.3f364a25134c3p-13, 0x1.bbed9a0d9d2e7p-17,
};

}  // namespace picokernel::passes::math
