#!/bin/sh
# engine.sh AGENTBOX TEST [OPTIONS]: runs a test with a Docker daemon and, where it is installed, podman's service. With
# AGENTBOX_TEST_SPLIT="SIZE DELAY_MS" whatever is said to them and by them comes in such pieces, and late.
#
# A daemon that answers is used. Else root starts one of its own, without networks (and in a network namespace: starting,
# it would remove another daemon's bridge) and with its data in a temporary folder, and ends it. Exit status 77 (skipped) where there is none.
set -u
agentbox=$1
shift
work=$(mktemp -d)
started=

finish() {
    for pid in $started; do
        kill "$pid" 2>/dev/null
        for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.5
        done
        kill -9 "$pid" 2>/dev/null
    done
    # What a storage driver left mounted goes first.
    awk -v dir="$work/" 'index($5, dir) == 1 { print $5 }' /proc/self/mountinfo | sort -r |
        while read -r mount; do umount -l "$mount"; done
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

skip() {
    echo "skipped: $1"
    exit 77
}

answers() { curl -s -m 5 -o /dev/null --unix-socket "$1" http://docker/_ping; }

wait_for() { # SOCKET PID
    for _ in $(seq 100); do
        answers "$1" && return 0
        kill -0 "$2" 2>/dev/null || return 1
        sleep 0.3
    done
    return 1
}

# Asks a daemon for a container of nothing but busybox that ends at once; prints what it says when it cannot start one.
container_refused() { # SOCKET
    api() { curl -s -m 60 --unix-socket "$socket" -X POST "$@"; }
    socket=$1
    tar -C "$(dirname "$(command -v busybox)")" -c busybox |
        api -o /dev/null -H 'Content-Type: application/x-tar' --data-binary @- 'http://docker/images/create?fromSrc=-&repo=agentbox-probe'
    id=$(api -H 'Content-Type: application/json' http://docker/containers/create \
        -d '{"Image":"agentbox-probe","Cmd":["/busybox","true"],"HostConfig":{"NetworkMode":"none"}}' | sed -n 's/.*"Id":"\([0-9a-f]*\)".*/\1/p')
    api "http://docker/containers/$id/start"
    api -o /dev/null "http://docker/containers/$id?force=true" -X DELETE
}

command -v curl >/dev/null || skip "curl is needed to look for Docker"
command -v busybox >/dev/null || skip "busybox (apt-get install busybox-static) is what the test's image is made of"
docker=${DOCKER_HOST:-unix:///var/run/docker.sock}
if ! { [ "${docker#unix://}" != "$docker" ] && answers "${docker#unix://}"; }; then
    [ "$(id -u)" = 0 ] && command -v dockerd >/dev/null || skip "no Docker daemon answers (apt-get install docker.io)"
    docker=unix://$work/docker.sock
    unshare --net dockerd --host "$docker" --data-root "$work/data" --exec-root "$work/exec" --pidfile "$work/pid" --bridge none \
        --iptables=false --ip6tables=false >"$work/log" 2>&1 &
    started=$!
    wait_for "$work/docker.sock" "$started" || {
        tail -n 3 "$work/log"
        skip "a Docker daemon cannot be started here"
    }
    why=$(container_refused "$work/docker.sock")
    [ -z "$why" ] || skip "a Docker daemon can start no container here: $why"
fi
export DOCKER_HOST="$docker"

if [ "$(id -u)" = 0 ] && command -v podman >/dev/null; then
    # Its folder is where conmon puts a file "oom" for each container that the kernel killed.
    (cd "$work" && exec podman system service --time=0 "unix://$work/podman.sock") >"$work/podman.log" 2>&1 &
    podman=$!
    started="$started $podman"
    if wait_for "$work/podman.sock" "$podman"; then
        export CONTAINER_HOST="unix://$work/podman.sock" AGENTBOX_TEST_PODMAN=1
    fi
fi

split() { # REAL NEW
    python3 "$(dirname "$0")/../support/fakedocker.py" "$2" $$ split "$1" $AGENTBOX_TEST_SPLIT >/dev/null &
    started="$! $started"
    wait_for "$2" $!
}

if [ -n "${AGENTBOX_TEST_SPLIT:-}" ]; then
    split "${DOCKER_HOST#unix://}" "$work/split-docker.sock" || exit 1
    export DOCKER_HOST="unix://$work/split-docker.sock"
    if [ -n "${AGENTBOX_TEST_PODMAN:-}" ]; then
        split "${CONTAINER_HOST#unix://}" "$work/split-podman.sock" || exit 1
        export CONTAINER_HOST="unix://$work/split-podman.sock"
    fi
fi

"$agentbox" test --timeout-s 280 "$@"
