// Symbol visibility of the core library: everything public lives in namespace picokernel.
#pragma once

#if defined(__GNUC__)
#define PK_API __attribute__((visibility("default")))
#else
#define PK_API
#endif
