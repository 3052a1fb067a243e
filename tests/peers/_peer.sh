# peer MINOR NAME REQUIREMENT...: opens a test that needs what PyPI has. $out is a folder then that goes with the shell, $py the
# python (3.MINOR or newer) of the environment NAME, which has what is named. Skips the test where that cannot be had.
peer() {
    python=$(newest_python "$1") name=$2
    [ -n "$python" ] || skip "no Python 3.$1 or newer"
    shift 2
    out=$(mktemp -d)
    trap 'rm -rf "$out"' EXIT
    py=$(venv "$name" "$python" "$@" 2>"$out/why") || skip "$(cat "$out/why")"
}

# venv NAME PYTHON REQUIREMENT...: makes a virtual environment outside the tree, once, and prints its python. Asks pip, with
# its own configuration, for exactly what is named (a requirement after `--no-deps` comes without its own; one after `--sources` too,
# as it is built for another Python, for tests that read its source texts). Fails with the reason on stderr.
venv() {
    name=$1 python=$2
    shift 2
    root=${AGENTBOX_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/agentbox-peers}/$name
    if [ ! -e "$root/ready" ]; then
        rm -rf "$root"
        mkdir -p "$(dirname "$root")" && "$python" -m venv "$root" >/dev/null 2>&1 || {
            echo "no $python with venv" >&2
            return 1
        }
        flags=
        for wanted in "$@"; do
            case $wanted in
            --no-deps) flags=--no-deps; continue ;;
            --sources)
                flags="--no-deps --only-binary=:all: --python-version 3.12 --platform manylinux1_x86_64 --platform manylinux2014_x86_64
                    --target $("$root/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
                continue
                ;;
            esac
            timeout 300 "$root/bin/pip" install -q --disable-pip-version-check $flags "$wanted" >"$root/pip.log" 2>&1 || {
                echo "pip cannot install $wanted: $(grep -m1 ERROR "$root/pip.log")" >&2
                return 1
            }
        done
        touch "$root/ready"
    fi
    echo "$root/bin/python"
}

# skip REASON
skip() {
    echo "SKIP $*"
    exit 77
}

# newest_python MINOR: the newest python3.N there is with N of at least MINOR, or nothing. Those that pyenv keeps count.
newest_python() {
    for minor in 14 13 12 11; do
        [ "$minor" -ge "$1" ] || break
        for python in "python3.$minor" "${PYENV_ROOT:-$HOME/.pyenv}/versions/3.$minor".*/bin/python3; do
            if "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
                echo "$python"
                return
            fi
        done
    done
}
