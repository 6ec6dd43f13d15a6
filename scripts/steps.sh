# Steps of the checks, and what they install: read by `.ci/run` and `scripts/long-checks`.
# shellcheck shell=bash

export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-never}"
# Every step builds once.
export CARGO_INCREMENTAL=0
# The second of the two sets of features with which programs are built; the first is the default.
# Without the crate that needs an MPI library, which has steps of its own.
readonly all_features=(--workspace --exclude resident-mpi --all-features)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
timings=""

# step NAME COMMAND...: says what runs, and afterwards how long it took.
step() {
    local name=$1 started=$SECONDS
    shift
    printf '\n=== %s\n' "$name"
    "$@"
    local line
    line=$(printf '%5d s  %s' "$((SECONDS - started))" "$name")
    timings+="$line"$'\n'
    printf '=== done: %s\n' "$line"
}

# What each step took, and all of them.
print_timings() {
    printf '\n%s%5d s  all of it, which passed\n' "$timings" "$SECONDS"
}

# Prints the oldest Rust that the manifests name, once rustup has it; nothing where it cannot be
# fetched, and there alone what needs it is not done.
fetch_oldest_rust() {
    local version
    version=$(sed -n 's/^rust-version = "\(.*\)"$/\1.0/p' Cargo.toml | head -n 1)
    rustup toolchain install "$version" --profile minimal --no-self-update >&2 && echo "$version" || true
}

# CUDA C is compiled for the host as C++, and libFuzzer is written in it.
install_cxx() {
    command -v "${CXX:-c++}" >/dev/null && return
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq && apt-get install -y -qq --no-install-recommends g++
    else
        echo "the checks need a C++ compiler: install g++ or clang, or set CXX" >&2
        return 1
    fi
}

# Two MPI libraries with their headers, and libclang, which reads these.
install_mpi() {
    local program missing=
    for program in mpicc.openmpi mpirun.openmpi mpicc.mpich mpirun.mpich; do
        command -v "$program" >/dev/null || missing=yes
    done
    compgen -G "/usr/lib/*/libclang*" >/dev/null || compgen -G "/usr/lib/llvm-*/lib/libclang*" >/dev/null || missing=yes
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            libopenmpi-dev openmpi-bin libmpich-dev mpich libclang-dev
    else
        echo "the checks of resident-mpi need Open MPI, MPICH and libclang: install them" >&2
        return 1
    fi
}

# The library by which Python exchanges arrays with ours. With a test, the other libraries are those
# that tests have.
build_exchange() {
    cargo build "${all_features[@]}" --lib --test gpu_conformance
}

# NVRTC needs no GPU and no driver; its library comes with a package of the Python package index.
fetch_nvrtc() {
    if ! python3 -m venv "$scratch/nvrtc" >/dev/null 2>&1; then
        if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
            echo "compiling the CUDA sources needs NVRTC, which pip brings: install python3 with venv" >&2
            return 1
        fi
        apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv
        rm -rf "$scratch/nvrtc"
        python3 -m venv "$scratch/nvrtc"
    fi
    "$scratch/nvrtc/bin/pip" install --quiet --disable-pip-version-check nvidia-cuda-nvrtc
}

# AMD's runtime and compiler need no GPU. Prints the file that has both; nothing where there is no
# permission to install them, or no apt, and there alone what needs them is not done.
fetch_hip() {
    local library=/usr/lib/x86_64-linux-gnu/libamdhip64.so.5
    if [ ! -e "$library" ]; then
        [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
        apt-get update -qq >&2 || return 1
        apt-get install -y -qq --no-install-recommends libamdhip64-5 libhiprtc-builtins5 >&2 || return 1
    fi
    echo "$library"
}

nvrtc_file() {
    find "$scratch/nvrtc" -name 'libnvrtc.so*' -print -quit
}

# NVRTC of CUDA 11 and of CUDA 12, each in a folder of its own.
older_nvrtc_files() {
    local version
    for version in 11 12; do
        "$scratch/nvrtc/bin/pip" install --quiet --disable-pip-version-check --no-deps \
            --target "$scratch/nvrtc$version" "nvidia-cuda-nvrtc-cu$version" >&2 || return 1
        find "$scratch/nvrtc$version" -name 'libnvrtc.so*' -print -quit
    done
}

# All packages of examples, so that they share one build of the library.
readonly example_packages=(-p resident-examples -p resident-example-pipeline -p resident-example-programs
    -p resident-example-budgets -p resident-example-live)

# example NAME ARGUMENT...: runs an example.
example() {
    local name=$1
    shift
    cargo build --quiet --release "${example_packages[@]}" --example "$name"
    "${CARGO_TARGET_DIR:-target}/release/examples/$name" "$@"
}
