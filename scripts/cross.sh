#!/usr/bin/env bash
# Builds the core, without Python and LLVM, for another machine by zig, and runs its tests under qemu where that machine runs Linux.
# Usage: scripts/cross.sh TARGET...     such as aarch64-linux-musl aarch64-macos
set -euo pipefail
cd "$(dirname "$0")/.."

zig=$(.venv/bin/python -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).with_name("zig"))')
jobs=$(nproc)

# Headers without machine code: this system's serve all.
headers=build-cross/include
mkdir -p "$headers" build-cross/cli11
for name in CLI nlohmann xxhash.h xxh3.h; do ln -sfn "/usr/include/$name" "$headers/$name"; done
echo 'add_library(CLI11::CLI11 INTERFACE IMPORTED)' >build-cross/cli11/CLI11Config.cmake

for target in "$@"; do
  export CCACHE_COMPILERCHECK="string:zig $("$zig" version) $target" # it sees a script that was just written
  folder=build-cross/$target
  options=(-DPICOKERNEL_TESTS=OFF)
  if [[ $target == *-linux-* ]]; then
    # Static: qemu needs nothing of the other machine's system.
    options=(-DBUILD_SHARED_LIBS=OFF -DCMAKE_EXE_LINKER_FLAGS=-static "-DCMAKE_CROSSCOMPILING_EMULATOR=$(command -v "qemu-${target%%-*}")")
  fi
  cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_TOOLCHAIN_FILE=cmake/zig.cmake \
    -DZIG="$zig" -DZIG_TARGET="$target" -DPICOKERNEL_PYTHON=OFF -DPICOKERNEL_LLVM=OFF \
    -DCMAKE_CXX_FLAGS="-isystem $PWD/$headers" -DCLI11_DIR="$PWD/build-cross/cli11" "${options[@]}"
  ninja -C "$folder"
  if [[ $target == *-linux-* ]]; then
    # The system's compilers make no code that could be loaded there: tests that look for some find none. qemu 7.2 loses
    # processes that fork when they have threads.
    env PATH=/nonexistent "$(command -v ctest)" --test-dir "$folder" --output-on-failure -j "$jobs" -E 'ThreadPoolTest.Fork'
  fi
done
