# Target picokernel_llvm: LLVM's headers, and the static libraries that the cpu backend needs, newest supported version first.
# -DLLVM_DIR=... names an installation.
foreach(version 22 21 20 19)
  if(NOT LLVM_FOUND)
    # LLVM counts releases as N.1 and accepts only its own major.minor.
    find_package(LLVM ${version}.1 QUIET CONFIG HINTS /usr/lib/llvm-${version} /opt/homebrew/opt/llvm@${version})
  endif()
endforeach()
if(NOT LLVM_FOUND)
  message(FATAL_ERROR "LLVM 19 to 22 not found. Run scripts/setup.sh, install llvm-22-dev, or build without the cpu "
                      "backend: -DPICOKERNEL_LLVM=OFF")
endif()
message(STATUS "LLVM ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}")

llvm_map_components_to_libnames(llvm_libs core orcjit native passes)
separate_arguments(llvm_definitions NATIVE_COMMAND ${LLVM_DEFINITIONS})
add_library(picokernel_llvm INTERFACE)
target_include_directories(picokernel_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_compile_definitions(picokernel_llvm INTERFACE ${llvm_definitions})
target_link_libraries(picokernel_llvm INTERFACE ${llvm_libs})
