# Target _core: the Python module. It is built in place, into python/picokernel/, so that a checkout can be imported;
# a wheel holds it beside the core library.
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module NumPy)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
                OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE result)
if(result)
  message(FATAL_ERROR "nanobind is not installed for ${Python_EXECUTABLE}. Run scripts/setup.sh, or build without Python: "
                      "-DPICOKERNEL_PYTHON=OFF")
endif()
find_package(nanobind CONFIG REQUIRED)

file(GLOB sources CONFIGURE_DEPENDS python/src/*.cpp)
# A domain of our own: MLX uses nanobind too, and neither must see the other's types. Speed before size, on the call path.
nanobind_add_module(_core NB_STATIC NOMINSIZE NB_DOMAIN picokernel NB_SUPPRESS_WARNINGS ${sources})
target_include_directories(_core PRIVATE src)
target_include_directories(_core SYSTEM PRIVATE ${Python_NumPy_INCLUDE_DIRS})
target_compile_definitions(_core PRIVATE PICOKERNEL_VERSION="${PROJECT_VERSION}")
target_link_libraries(_core PRIVATE picokernel picokernel_flags)
if(SKBUILD)
  set_target_properties(_core PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS picokernel _core LIBRARY DESTINATION picokernel COMPONENT python)
  # For what is compiled where MLX is (mlx_bridge.py).
  install(DIRECTORY include/picokernel DESTINATION picokernel/include COMPONENT python)
else()
  set_target_properties(_core PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_SOURCE_DIR}/python/picokernel)
endif()
