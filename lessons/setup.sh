# shellcheck shell=bash
# What lessons/run and tests/run share: installing packages, configuring, building, and the environment of a run.
# To be sourced. All it says goes to stderr, so that a lesson's output stays a lesson's output.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=$(basename "$(cd "$(dirname "$0")" && pwd)")/$(basename "$0")
# shellcheck disable=SC2034  # for those who source this
packages=(g++ cmake ninja-build libxtensor-dev libxtensor-blas-dev libxsimd-dev libopenblas-dev nlohmann-json3-dev libcli11-dev)

say() { printf '%s: %s\n' "$program" "$*" >&2; }
die() { say "$1"; exit "${2:-1}"; }

# The help of a script is the comment at its top.
help() { sed -n '2,/^[^#]/ { /^#/ { s/^# \{0,1\}//; p; }; }' "$0"; }

# set_up PACKAGE…: from any machine to one that can build. Sets build_base (where build folders go) and key.
set_up() {
    build_base=${LOOKBACK_BUILD_DIR:-$root/build}
    if ! mkdir -p "$build_base" 2>/dev/null || [[ ! -w $build_base ]]; then
        die "cannot write to $build_base (LOOKBACK_BUILD_DIR=FOLDER builds elsewhere)"
    fi
    install_packages "$@"
    local command
    for command in cmake "${CXX:-c++}"; do
        command -v "$command" >/dev/null || die "$command is missing"
    done
    key=$(machine_key)
    choose_blas
}

# Installs the Debian packages that are not there yet. Where that cannot be, says what is missing and goes on: CMake finds
# what came another way, and names what it misses.
install_packages() {
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        compgen -G "$build_base/*/.configured" >/dev/null && return  # it has worked before
        say "there is no apt here. Needed, by their Debian names: $*"
        return
    fi
    local missing apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600)
    missing=$(comm -23 <(printf '%s\n' "$@" | sort -u) \
        <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p' | sort -u))
    missing=${missing//$'\n'/ }
    [[ $missing ]] || return 0
    if [[ $EUID != 0 ]]; then
        if ! command -v sudo >/dev/null; then
            say "these packages are missing, and there is no sudo to install them; as root: apt-get install $missing"
            return
        fi
        if [[ -t 0 ]]; then apt=(sudo "${apt[@]}"); else apt=(sudo -n "${apt[@]}"); fi
    fi
    say "installing $missing"
    # shellcheck disable=SC2086  # a list of words
    if ! { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends $missing; } >/dev/null; then
        say 'they could not all be installed'
    fi
}

# What is compiled for this machine runs on no other, and a build folder cannot be moved: its name ends with a sum of both.
machine_key() {
    {
        printf '%s\n' "$root"
        "${CXX:-c++}" --version
        grep -m 1 -E '^(flags|Features)' /proc/cpuinfo || sysctl -n machdep.cpu.brand_string || uname -m
    } 2>/dev/null | cksum | { read -r sum _; printf '%08x' "$sum"; }
}

# The environment of what we run: one BLAS thread (small products only lose by more) and a fast kernel. An OpenBLAS that
# is older than the processor does not know it and falls back to kernels of another age, five times slower.
choose_blas() {
    export OPENBLAS_NUM_THREADS=${OPENBLAS_NUM_THREADS:-1}
    if [[ ${OPENBLAS_CORETYPE:-} ]] || ! grep -qwm 1 avx2 /proc/cpuinfo 2>/dev/null; then return; fi
    local kernel
    kernel=$(OPENBLAS_VERBOSE=2 LD_PRELOAD=libopenblas.so.0 /bin/true 2>&1 | sed -n 's/^Core: //p')  # told as it is loaded
    case $kernel in Prescott | Nehalem | Barcelona) ;; *) return ;; esac
    if grep -qwm 1 avx512f /proc/cpuinfo; then OPENBLAS_CORETYPE=SkylakeX; else OPENBLAS_CORETYPE=Haswell; fi
    export OPENBLAS_CORETYPE
    say "OpenBLAS does not know this processor and would run its $kernel kernels; using $OPENBLAS_CORETYPE"
}

# One run at a time builds in a folder; the lock is held until `unlock` or the end.
lock() {
    mkdir -p "$1"
    command -v flock >/dev/null || return 0
    exec 9>"$1/.lock"
    flock -n 9 || { say 'waiting for another run to finish its build'; flock 9; }
}
unlock() { exec 9>&-; }

# configure FOLDER OPTION…: runs CMake, unless it has run with these options.
configure() {
    local folder=$1 generator=(); shift
    if [[ -f $folder/.configured && $(<"$folder/.configured") == "$*" ]]; then return; fi
    rm -f "$folder/CMakeCache.txt"  # of other options: where the compiler is another, CMake would forget the new ones
    if [[ ! -f $folder/CMakeCache.txt ]] && command -v ninja >/dev/null; then generator=(-G Ninja); fi
    if ! cmake -S "$root" -B "$folder" "${generator[@]}" "$@" >"$folder/configure.log" 2>&1 9>&-; then
        cat "$folder/configure.log" >&2
        return 1
    fi
    printf '%s\n' "$*" >"$folder/.configured"
}

# announce FOLDER JOBS TARGET…: how long the first build takes, as far as one can know it beforehand.
announce() {
    local folder=$1 jobs=$2 steps seconds_a_step=5; shift 2  # on average, by g++ 12 on one core of 2026
    steps=$(ninja -C "$folder" -t commands "$@" 2>/dev/null | wc -l) || true
    if ((steps)); then
        say "building; the first time takes about $(((steps * seconds_a_step / jobs + 59) / 60)) minutes ($steps steps, $jobs at a time)"
    else
        say 'building; the first time takes some minutes'
    fi
}

# compile FOLDER TARGET…: with as many jobs as there are cores and memory for (gib_a_job each).
compile() {
    local folder=$1 jobs room; shift
    if [[ $root/lessons -nt $folder/CMakeFiles/cmake.check_cache ]]; then  # perhaps a lesson came or went
        cmake "$folder" >"$folder/configure.log" 2>&1 9>&- || { cat "$folder/configure.log" >&2; return 1; }
    fi
    if [[ -f $folder/build.ninja && $(ninja -C "$folder" -n "$@" 2>&1) == *'no work to do'* ]]; then return; fi
    jobs=$(getconf _NPROCESSORS_ONLN)
    room=$(awk -v gib="${gib_a_job:-1}" '/^MemAvailable/ { print int($2 / 1048576 / gib) }' /proc/meminfo 2>/dev/null) || room=$jobs
    if ((room < jobs)); then jobs=$((room > 1 ? room : 1)); fi
    [[ -f $folder/liblookback.a ]] || announce "$folder" "$jobs" "$@"
    # ccache goes by the command line, where -march=native is the same on every machine: a name space for each
    # (and what it must not mind about precompiled headers)
    CCACHE_NAMESPACE=lookback-$key CCACHE_SLOPPINESS=pch_defines,time_macros cmake --build "$folder" -j "$jobs" --target "$@" >&2 9>&-
}

# What draws pages without a screen: Chromium, a font, node, and the packages that the viewer is built of and tested with.
browser_tools() {
    build_base=${build_base:-$root/build}
    local tools=(chromium fonts-dejavu-core)
    command -v node >/dev/null && command -v npm >/dev/null || tools+=(nodejs npm)
    install_packages "${tools[@]}"
    command -v node >/dev/null || die 'node is missing (Debian: apt-get install nodejs npm)'
    (($(node -p 'process.versions.node.split(".")[0]') >= 18)) || die "node $(node --version) is too old: 18 or newer is needed"
    command -v npm >/dev/null || die 'npm is missing (Debian: apt-get install npm)'
    local viewer=$root/notebooks/viewer
    if ! cmp -s "$viewer/package-lock.json" "$viewer/node_modules/.installed"; then
        say 'installing the packages of notebooks/viewer'
        (cd "$viewer" && npm ci --silent --no-audit --no-fund >&2) || die 'npm ci failed'
        cp "$viewer/package-lock.json" "$viewer/node_modules/.installed"
    fi
}
