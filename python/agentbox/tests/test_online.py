"""An online loop: weights change, some rollouts are slow, the trainer and the engine are killed and come back.

The weights change after every few groups, or, with AGENTBOX_ONLINE_PERIOD_S, every so many seconds: 20 for the long form.
"""

import json
import os
import pathlib
import subprocess
import sys
import threading

from conftest import BIN, Engine, Model, task, wait_for

import agentbox

PERIOD_S = float(os.environ.get("AGENTBOX_ONLINE_PERIOD_S", "0"))
TASKS, SIZE, STALENESS, EVERY = 48, 4, 1, 4
# With a period, the work lasts for some ten of them; a call is short against it, a straggler's is not.
CALL_S = PERIOD_S * 10 / (TASKS * (SIZE + 1) / 8) if PERIOD_S else 0.02
SLOW_S = PERIOD_S * 2.5 or 2.0


def lines_of(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.endswith("\n")]


def events(run, kind):
    return [event for event in lines_of(f"{run}/events.jsonl") if event.get("kind", event.get("event")) == kind]


class Weights:
    """Announces new weights again and again, as the trainer's other half does."""

    def __init__(self, url):
        self.url, self.version, self.over = url, 1, threading.Event()
        self.thread = threading.Thread(target=self.go, daemon=True)
        self.thread.start()

    def go(self):
        door = agentbox.door.Wire(self.url, None, 60.0)
        while not self.over.wait(PERIOD_S):
            self.version += 1
            try:
                door.ask("POST", "/v1/policy", {"version": self.version, "model": f"policy@{self.version}"})
            except agentbox.DoorError:
                pass  # the run has ended
        door.close()

    def close(self):
        self.over.set()
        self.thread.join()


def test_no_group_is_lost_and_none_is_used_twice(make, run, tmp_path):
    model = make(Model, lambda n: SLOW_S if n % 23 == 0 else CALL_S)  # every 23rd call is a straggler's
    engine = make(
        Engine, run, model, "--group-size", str(SIZE), "-c", "8", "--max-lead", "3", "--weights", "1",
        "--max-staleness", str(STALENESS), "--max-errors", "1000",
    ).start()
    used = str(tmp_path / "used.jsonl")
    with agentbox.connect(engine.url) as door:
        door.send_tasks([task(f"t{i}") for i in range(TASKS)], key="all")
        door.end_tasks()
    weights = make(Weights, engine.url) if PERIOD_S else None
    trainer = str(pathlib.Path(__file__).with_name("trainer.py"))
    kills = 0
    for at in (TASKS // 6, TASKS // 3, TASKS // 2, None):
        process = subprocess.Popen([sys.executable, trainer, engine.url, used, "0" if PERIOD_S else str(EVERY)])
        if at is None:
            assert process.wait(600) == 0, engine.said()
            break
        wait_for(lambda: len(lines_of(used)) >= at or process.poll() is not None, 600)
        if at == TASKS // 3:
            engine.kill()  # the trainer waits for it
            engine.start()
            wait_for(lambda: len(lines_of(used)) > at or process.poll() is not None, 600)
        process.kill()
        kills += process.wait() == -9
    if weights:
        weights.close()
    assert engine.wait(60) in (0, 1, 3)
    assert kills == 3
    check_groups(run, lines_of(used))
    check_versions(run)
    report = subprocess.run([BIN, "traj", "check", run], capture_output=True, text=True, timeout=120)
    assert report.returncode == 0, report.stdout + report.stderr
    versions = max(line["version"] for line in lines_of(used))
    assert versions >= 5
    assert events(run, "stale"), "no straggler became too old: nothing shows that one is made again"
    print(f"{len(lines_of(used))} groups used, {versions} versions, {len(events(run, 'stale'))} rollouts made again,",
          f"{len(events(run, 'stale_group'))} groups too old")


def check_groups(run, lines):
    closed = {group["seq"]: group for group in lines_of(f"{run}/groups.jsonl")}
    seqs = [line["seq"] for line in lines]
    assert len(seqs) == len(set(seqs)), "a group was used twice"
    too_old = {event["seq"] for event in events(run, "stale_group")}
    dropped = {seq for seq, group in closed.items() if group.get("dropped")}
    assert not set(seqs) & (too_old | dropped)
    assert set(seqs) | too_old | dropped == set(closed), "a group was lost"
    assert {group["task_id"] for group in closed.values()} == {f"t{i}" for i in range(TASKS)}
    assert len(closed) == TASKS
    for line in lines:
        assert line["version"] - line["version_min"] <= STALENESS, line
        assert line["rows"] >= len(line["members"]) == SIZE
    with open(f"{run}/cursor.json", encoding="utf-8") as text:
        assert json.load(text)["acknowledged"] == TASKS


def check_versions(run):
    out = subprocess.run([BIN, "export", run, "--format", "canonical", "-o", f"{run}.all.jsonl"], capture_output=True, text=True,
                         timeout=120)
    assert out.returncode == 0, out.stderr
    calls = [call for line in lines_of(f"{run}.all.jsonl") for call in line["calls"] if call.get("model")]
    assert calls
    for call in calls:  # what was recorded when it was sent is what the server was asked for
        assert [part["v"] for part in call["versions"]] == [int(call["model"].split("@")[1])], call
