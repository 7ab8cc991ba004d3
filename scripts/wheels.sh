#!/usr/bin/env bash
# Builds self-contained wheels into dist/: LLVM inside, for this machine's glibc and later ones.
# Usage: scripts/wheels.sh [PYTHON...]     without: every CPython from 3.11 on that is at hand
set -euo pipefail
cd "$(dirname "$0")/.."

identify() { # "cp311 /path/of/python", or nothing for what is too old or no CPython
  "$1" -I -c 'import sys
if sys.version_info >= (3, 11) and sys.implementation.name == "cpython" and "t" not in getattr(sys, "abiflags", ""):
    print("cp%d%d" % sys.version_info[:2], sys.executable)' 2>/dev/null || true
}

candidates=("$@")
[ $# -gt 0 ] || candidates=(python3.1{1..9} /usr/bin/python3.1{1..9} "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python)
declare -A pythons=()
for candidate in "${candidates[@]}"; do
  read -r tag path <<<"$(identify "$candidate")"
  if [ -n "$tag" ]; then [ -n "${pythons[$tag]:-}" ] || pythons[$tag]=$path
  elif [ $# -gt 0 ]; then echo "wheels: $candidate is no CPython from 3.11 on" >&2; exit 1; fi
done

# Each Python builds in a folder of its own; ccache serves what they share.
raw=$(mktemp -d)
trap 'rm -rf "$raw"' EXIT
mkdir -p dist
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
for tag in $(printf '%s\n' "${!pythons[@]}" | sort); do
  echo "wheels: $tag with ${pythons[$tag]}"
  .venv/bin/python -m pip --disable-pip-version-check --python "${pythons[$tag]}" wheel -q --no-deps -w "$raw/$tag" .
  # The tag that its symbols allow, and copies of the libraries that not every Linux has.
  PATH="$PWD/.venv/bin:$PATH" .venv/bin/auditwheel repair --plat auto --strip -w dist "$raw/$tag"/*.whl
done
ls -l dist/*.whl
