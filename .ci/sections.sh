# For scripts that run named sections and say at the end how long each took.
jobs=$(nproc)
sections=()

section() { # section NAME COMMAND...
  local name=$1 start=$SECONDS
  shift
  printf '\n==== %s\n' "$name"
  "$@" </dev/null
  sections+=("$(printf '%5d s  %s' $((SECONDS - start)) "$name")")
}

show_times() {
  printf '\n==== times\n'
  printf '%s\n' "${sections[@]}"
}
