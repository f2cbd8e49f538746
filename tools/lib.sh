# shellcheck shell=bash
# Shared by the scripts in this folder; sourced, never run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
script=$(basename "$0")

say() { printf '%s: %s\n' "$script" "$*" >&2; }

die() {
  say "$*"
  exit 2
}

# build FOLDER TARGET [cmake options...]: configures once, then builds what is out of date.
build() {
  local folder=$1 target=$2
  shift 2
  local launcher=()
  if command -v ccache > /dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  local log
  log=$(mktemp)
  if ! cmake -S "$root" -B "$folder" -G Ninja "${launcher[@]}" "$@" > "$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
  ninja --quiet -C "$folder" "$target" >&2
}

# elapsed SECONDS_BEFORE: "3m07s" since then, by the shell's own clock.
elapsed() {
  local seconds=$((SECONDS - $1))
  printf '%dm%02ds' $((seconds / 60)) $((seconds % 60))
}
