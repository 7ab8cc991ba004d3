#!/usr/bin/env bash
# Installs what a checkout needs to build, test and run: system packages by apt-get, Python packages into .venv.
# Usage: scripts/setup.sh [--bench] [--wheel] [--cross]
#   --bench adds the peers that `make bench` measures against, --wheel what makes wheels portable, --cross what compiles for
#   other machines and runs their programs.
# It looks first and installs only what is missing. PYTHON=... chooses the interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."

bench=0 wheel=0 cross=0
for arg in "$@"; do
  case "$arg" in
    --bench) bench=1 ;;
    --wheel) wheel=1 ;;
    --cross) cross=1 ;;
    *) echo "setup: unknown option '$arg'; there are --bench, --wheel and --cross" >&2; exit 2 ;;
  esac
done

log=$(mktemp)
trap 'rm -f "$log"' EXIT

say() { echo "setup: $*"; }
die() { echo "setup: $*" >&2; exit 1; }

# logged LABEL COMMAND...: runs the command with its output in the log, says every 10 s where it is,
# shows the end of the log if it fails, and returns its status.
logged() {
  local label=$1 start=$SECONDS next=10 pid status=0
  shift
  say "$label ..."
  "$@" >"$log" 2>&1 </dev/null &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.2
    if ((SECONDS - start >= next)); then
      say "  $((SECONDS - start)) s: $(tail -n 1 "$log" | tr -d '\r' | cut -c1-90)"
      next=$((next + 10))
    fi
  done
  wait "$pid" || status=$?
  if ((status)); then
    tail -n 25 "$log" | sed 's/^/    /' >&2
    say "  failed after $((SECONDS - start)) s" >&2
  else
    say "  done in $((SECONDS - start)) s"
  fi
  return "$status"
}

# ---- system packages ------------------------------------------------------------------------------------------------

# at_least WANTED FOUND: dotted versions.
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

has_header() { echo "#include <$1>" | "${CXX:-g++}" -E -x c++ - >/dev/null 2>&1; }

has_llvm() {
  local version
  for version in 22 21 20 19; do
    if [ -e "/usr/lib/llvm-$version/lib/libLLVMOrcJIT.a" ] &&
      [ -e "/usr/lib/llvm-$version/lib/cmake/llvm/LLVMConfig.cmake" ]; then return 0; fi
  done
  [ -n "${LLVM_DIR:-}" ]
}

# What the interpreter $1 lacks, as words: "headers", "venv"; nothing printed if it is ready; fails if it is unusable.
python_lacks() {
  "$1" - 2>/dev/null <<'PY'
import importlib.util, os, sys, sysconfig
if sys.version_info < (3, 11):
    sys.exit(1)
if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
    print("headers")
if not all(map(importlib.util.find_spec, ("venv", "ensurepip"))):
    print("venv")
PY
}

# Sets `python`: the first ready candidate, else the first usable one.
choose_python() {
  local candidate lacks first=""
  for candidate in ${PYTHON:-python3.12 python3.13 python3.11 python3}; do
    lacks=$(python_lacks "$candidate") || continue
    if [ -z "$lacks" ]; then python=$candidate; return; fi
    [ -n "$first" ] || first=$candidate
  done
  python=$first
  [ -n "$python" ] || die "no Python >= 3.11 found (tried ${PYTHON:-python3.12 python3.13 python3.11 python3});" \
    "install one, or name one: make setup PYTHON=/path/to/python3"
}

find_missing() {
  missing=()
  local gcc
  gcc=$("${CXX:-g++}" -dumpfullversion 2>/dev/null || "${CXX:-g++}" -dumpversion 2>/dev/null || echo 0)
  # clang reports its own version, or GCC 4.2.1 in old releases: only g++ is checked by number.
  if [ -n "${CXX:-}" ] || at_least 12 "$gcc"; then :; else missing+=(g++); fi
  local cmake
  cmake=$(cmake --version 2>/dev/null | sed -n '1s/[^0-9]*//p' || true)
  at_least 3.22 "${cmake:-0}" || missing+=(cmake)
  command -v ninja >/dev/null || missing+=(ninja-build)
  command -v ccache >/dev/null || missing+=(ccache)
  has_header zstd.h || missing+=(libzstd-dev)
  has_header zlib.h || missing+=(zlib1g-dev)
  has_header gtest/gtest.h || missing+=(libgtest-dev)
  has_header CLI/CLI.hpp || missing+=(libcli11-dev)
  has_header xxhash.h || missing+=(libxxhash-dev)
  has_header nlohmann/json.hpp || missing+=(nlohmann-json3-dev)
  if ((bench)); then has_header benchmark/benchmark.h || missing+=(libbenchmark-dev); fi
  if ((cross)); then
    command -v qemu-aarch64 >/dev/null || missing+=(qemu-user)
    [ -e /usr/src/googletest/CMakeLists.txt ] || missing+=(googletest)
  fi
  has_llvm || missing+=(llvm)
  choose_python
  local version lack
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  for lack in $(python_lacks "$python"); do
    case "$lack" in
      headers) missing+=("python$version-dev") ;;
      venv) missing+=("python$version-venv") ;;
    esac
  done
}

has_candidate() { apt-cache show "$1" >/dev/null 2>&1; }

# Replaces the word `llvm` by the newest llvm-N-dev that apt offers; prints nothing and fails if there is none.
newest_llvm() {
  local version
  for version in 22 21 20 19; do
    if has_candidate "llvm-$version-dev"; then echo "llvm-$version-dev"; return; fi
  done
  return 1
}

# Every wanted package has a candidate, LLVM in its newest version?
lists_suffice() {
  local package
  for package in "${missing[@]}"; do
    [ "$package" != llvm ] || package=llvm-22-dev
    has_candidate "$package" || return 1
  done
}

packages() { # the missing packages' names, with LLVM's version filled in
  local package
  for package in "${missing[@]}"; do
    if [ "$package" = llvm ]; then newest_llvm || echo llvm-22-dev; else echo "$package"; fi
  done
}

# Sets `apt`: the command with what it needs to be root; fails if it cannot be.
choose_apt() {
  local root=()
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null || return 1
    root=(sudo -n)
  fi
  apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o Dpkg::Use-Pty=0 -o APT::Color=0)
}

install_system_packages() {
  find_missing
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || die "missing: ${missing[*]} (Debian's names), and there is no apt-get here; install them" \
    "with this system's package manager (LLVM: the development files of 22, 21, 20 or 19, with static libraries)"

  if ! choose_apt; then
    die "these system packages are missing and installing them needs root. Run this, then make again:

    sudo apt-get update && sudo apt-get install -y --no-install-recommends $(packages | tr '\n' ' ')
"
  fi
  local updated=0
  if ! lists_suffice; then
    logged "apt-get update" "${apt[@]}" update || say "  going on with the package lists that are here"
    updated=1
  fi
  local wanted
  mapfile -t wanted < <(packages)
  local install=("${apt[@]}" install -y --no-install-recommends "${wanted[@]}")
  if ! logged "installing by apt-get: ${wanted[*]}" "${install[@]}"; then
    # Old package lists name files that the mirror no longer has.
    if ((updated)) || ! logged "apt-get update, for another try" "${apt[@]}" update ||
      ! logged "installing by apt-get: ${wanted[*]}" "${install[@]}"; then
      die "apt-get failed; the command was: apt-get install -y --no-install-recommends ${wanted[*]}"
    fi
  fi
  find_missing
  [ ${#missing[@]} -eq 0 ] || die "still missing after apt-get: ${missing[*]}"
}

# Pages are tested in a browser. Where there is none, those tests are skipped.
install_browser() {
  if command -v chromium >/dev/null; then return 0; fi
  if command -v apt-get >/dev/null && choose_apt &&
    { has_candidate chromium || logged "apt-get update" "${apt[@]}" update; } && has_candidate chromium &&
    logged "installing by apt-get: chromium" "${apt[@]}" install -y --no-install-recommends chromium; then return 0; fi
  say "Chromium could not be installed: tests of HTML pages will be skipped. All else works."
}

# Kernels of threads run on OpenCL's CPU driver in the tests. Where there is none, those tests are skipped.
install_opencl() {
  if [ -e /etc/OpenCL/vendors/pocl.icd ]; then return 0; fi
  if command -v apt-get >/dev/null && choose_apt && has_candidate pocl-opencl-icd &&
    logged "installing by apt-get: pocl-opencl-icd" "${apt[@]}" install -y --no-install-recommends pocl-opencl-icd ocl-icd-libopencl1; then return 0; fi
  say "PoCL could not be installed: the opencl backend may not be live. All else works."
}

# ---- Python packages ------------------------------------------------------------------------------------------------

make_venv() {
  if [ -x .venv/bin/python ] && [ -z "$(python_lacks .venv/bin/python || echo unusable)" ] &&
    [ "$(.venv/bin/python -c 'import sys; print(sys.prefix)')" = "$PWD/.venv" ] && .venv/bin/pip --version >/dev/null 2>&1; then
    return
  fi
  logged "making .venv with $("$python" --version)" "$python" -m venv --clear .venv
  rm -f build/CMakeCache.txt build/build.ninja # they hold the former interpreter's paths
}

# pip_install NAME GROUP...: once per list of requirements.
pip_install() {
  local name=$1 stamp=.venv/.requirements-$1 wanted
  shift
  wanted=$(.venv/bin/python scripts/requirements.py "$@")
  if [ -e "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then return 0; fi
  local lines
  mapfile -t lines <<<"$wanted"
  logged "pip: ${lines[*]}" .venv/bin/python -m pip --disable-pip-version-check install --progress-bar off \
    --prefer-binary "${lines[@]}" || return 1
  printf '%s' "$wanted" >"$stamp"
}

link_checkout() {
  local site
  site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  echo "$PWD/python" >"$site/picokernel-checkout.pth"
  cat >.venv/bin/picokernel <<SCRIPT
#!$PWD/.venv/bin/python
import sys

from picokernel.cli import main

sys.exit(main())
SCRIPT
  chmod +x .venv/bin/picokernel
}

install_system_packages
install_browser
install_opencl
make_venv
pip_install base project build test lint bench || die "pip failed; see above"
pip_install mlx mlx || say "MLX could not be installed: its backend will not be live. All else works." \
  "Try again by: .venv/bin/pip install 'mlx[cpu]'"
if ((bench)); then
  pip_install peers peers project || die "pip could not install the peers of make bench; see above"
fi
if ((wheel)); then pip_install wheel wheel || die "pip could not install what wheels need; see above"; fi
if ((cross)); then pip_install cross cross || die "pip could not install zig; see above"; fi
link_checkout
touch .venv/.setup
# After .setup, on which they depend in the Makefile.
if ((bench)); then touch .venv/.setup-bench; fi
if ((wheel)); then touch .venv/.setup-wheel; fi
if ((cross)); then touch .venv/.setup-cross; fi
