# Target picokernel_flags: how our own sources are compiled and linked. Also ccache, where present.
add_library(picokernel_flags INTERFACE)
target_compile_options(picokernel_flags INTERFACE
  -Wall -Wextra
  # Designated initializers leave out on purpose what keeps its default.
  -Wno-missing-field-initializers
  # NumPy's results are unfused; on arm64 compilers fuse unless told not to.
  -ffp-contract=off
  -ffunction-sections -fdata-sections)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # std::string + char* gives false alarms here (GCC bug 105329).
  target_compile_options(picokernel_flags INTERFACE -Wno-restrict)
else()
  # libstdc++ 12's own std::stable_sort calls what its header calls deprecated.
  target_compile_options(picokernel_flags INTERFACE -Wno-deprecated-declarations)
endif()

# Warnings are errors with the compilers that CI runs. Others may warn of more, and instrumented code
# gives false alarms: both must still build.
set(known_compiler FALSE)
if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
   OR CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(known_compiler TRUE)
endif()
if(known_compiler AND NOT PICOKERNEL_SANITIZE AND NOT SKBUILD)
  target_compile_options(picokernel_flags INTERFACE -Werror)
endif()

if(NOT APPLE)
  # The build id is part of the kernel cache's key; not every linker writes one unasked.
  target_link_options(picokernel_flags INTERFACE -Wl,--gc-sections -Wl,--as-needed -Wl,--build-id=sha1)
endif()
if(PICOKERNEL_SANITIZE)
  set(sanitize -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(PICOKERNEL_SANITIZE STREQUAL "thread")
    set(sanitize -fsanitize=thread -fno-omit-frame-pointer)
  endif()
  target_compile_options(picokernel_flags INTERFACE ${sanitize})
  target_link_options(picokernel_flags INTERFACE ${sanitize})
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
