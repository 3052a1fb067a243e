#!/usr/bin/env python3
"""kill -9 of the engine at random moments: what is left?

    kill_moments.py AGENTBOX SOURCE_DIR [MOMENTS [SEED]]

Starts `agentbox script kill_moments.lua` (four rollouts at once, without end), kills it with SIGKILL after a random
time, and then waits, at most the bound, until what was its own is gone: processes (everything that descended from it), mounts, cgroups, files in the
temporary folder. Every document that it left must be whole. Prints one line per finding and a closing count.
"""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

SOAK = bool(os.environ.get("AGENTBOX_SOAK"))
BOUND_S = 2.0 if SOAK else 10.0  # two seconds is the promise; a busy machine gets more outside the soak


def stat_of(pid):
    """Parent and start time of a process, or None when it is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            fields = f.read().rsplit(b")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else (int(fields[1]), int(fields[19]))


def descendants(root):
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (st := stat_of(name)):
            parents.setdefault(st[0], []).append((int(name), st[1]))
    found, todo = [], [root]
    while todo:
        for pid, start in parents.get(todo.pop(), []):
            found.append((pid, start))
            todo.append(pid)
    return found


def ours_in_cgroups(pid):
    """Cgroup folders are named agentbox-BOOT-PID-START."""
    found = []
    for top, dirs, _ in os.walk("/sys/fs/cgroup"):
        found += [os.path.join(top, d) for d in dirs if d.startswith("agentbox-") and d.split("-")[2] == str(pid)]
    return set(found)


def mounts():
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as f:
        return set(f)


def left_over(pid, family, tmp, before):
    left = [f"process {p}" for p, start in family if (st := stat_of(p)) and st[1] == start]
    left += sorted(ours_in_cgroups(pid))
    left += [f"mount {line.strip()}" for line in mounts() - before]
    left += [f"file {name}" for name in os.listdir(tmp)]
    return left


def torn_documents(out):
    torn = []
    for top, _, names in os.walk(out):
        for name in names:
            path = os.path.join(top, name)
            with open(path, "rb") as f:
                data = f.read()
            if name.endswith(".jsonl"):
                lines = data.split(b"\n")
                texts, tail = lines[:-1], lines[-1]
                if tail:
                    torn.append(f"{path}: a line without its end")
            elif name.endswith(".json"):
                texts = [data]
            elif name == "lock" or "/blobs/" in path or name.startswith(("run.db", "planes-")):
                continue
            else:
                torn.append(f"{path}: neither a document nor a folder of ours")
                continue
            for text in texts:
                try:
                    json.loads(text)
                except ValueError as e:
                    torn.append(f"{path}: {e}")
    return torn


def one_moment(binary, source, delay):
    with tempfile.TemporaryDirectory(prefix="moments-") as work:
        out, tmp = os.path.join(work, "out"), os.path.join(work, "tmp")
        os.mkdir(tmp)
        before = mounts()
        engine = subprocess.Popen(
            [binary, "script", f"{source}/tests/faults/kill_moments.lua", f"{source}/examples", f"{source}/tasks", out],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": tmp}, cwd=work)
        if engine.stdout.readline() != b"going\n":
            engine.kill()
            return [f"did not start: {engine.stderr.read().decode(errors='replace')}"], 0
        time.sleep(delay)
        if engine.poll() is not None:
            return [f"ended by itself: {engine.stderr.read().decode(errors='replace')}"], 0
        family = descendants(engine.pid)
        os.kill(engine.pid, signal.SIGKILL)
        killed = time.monotonic()
        engine.wait()
        left = left_over(engine.pid, family, tmp, before)
        while left and time.monotonic() - killed < BOUND_S:
            time.sleep(0.02)
            left = left_over(engine.pid, family, tmp, before)
        return left + torn_documents(out), len(family)


def main():
    binary, source = map(os.path.abspath, sys.argv[1:3])
    moments = int(sys.argv[3]) if len(sys.argv) > 3 else 50 if SOAK else 8
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 30)
    rand = random.Random(seed)
    failed, most = 0, 0
    for i in range(moments):
        delay = rand.uniform(0, 0.05) if i % 3 == 0 else rand.uniform(0, 2.5)
        problems, alive = one_moment(binary, source, delay)
        most = max(most, alive)
        failed += bool(problems)
        for text in problems:
            print(f"moment {i} (seed {seed}, after {delay:.3f} s): {text}")
    if most < 3:
        print("no moment had a sandbox to leave behind: this run says nothing")
        failed = moments
    print(f"{moments - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
