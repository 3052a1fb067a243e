"""The door as a trainer uses it, against the real engine."""

import concurrent.futures
import contextlib
import json
import subprocess

import pytest
from conftest import BIN, Engine, Model, task, wait_for

import agentbox

FORMATS = ["art", "trl", "verl", "skyrl"]


def read_lines(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def test_tasks_in_groups_out(make, run):
    engine = make(Engine, run, make(Model), "--group-size", "3", "-c", "1").start()
    with agentbox.connect(engine.url, consumer="test") as door:
        assert door.send_tasks([task("a"), task("b")], key="k") == 2
        assert door.send_tasks([task("a"), task("b")], key="k") == 0
        door.end_tasks()
        seen = []
        for group in door.groups(formats=["verl"]):
            assert group.members == [m for m in group.members if m] and len(group.members) == group.size == 3
            assert group.rewards == [1.0, 1.0, 1.0] and not group.partial and group.zero_signal
            assert [row["response_ids"] for row in group.to_verl()] and len(group.trajectories()) == 3
            seen.append(group.task_id)
            group.ack()
            group.ack()
        assert seen == ["a", "b"]
        assert engine.wait(30) == 0
        door.policy(9)  # too late for any rollout, and nothing to wait for
        with pytest.raises(agentbox.Unreachable, match="for 0 s"):
            door.status()


def test_rows_are_those_of_the_export(make, run, tmp_path):
    engine = make(Engine, run, make(Model), "--group-size", "4", "-c", "1").start()
    with agentbox.connect(engine.url) as door:
        door.send_tasks([task("a"), task("b")])
        door.end_tasks()
        groups = list(door.groups(formats=["art", "verl"], ahead=5))
        rows = {name: [row for group in groups for row in getattr(group, f"to_{name}")()] for name in FORMATS}
        strict = [row for group in groups for row in group.to_verl(mode="strict")]
        exchanges = [row for group in groups for row in group.to_art(form="exchanges")]
        with pytest.raises(agentbox.Refused, match="unknown format"):
            groups[0].to("nonsense")
        door.ack(*groups)
    assert engine.wait(30) == 0
    for name in FORMATS:
        out = str(tmp_path / f"{name}.jsonl")
        subprocess.run([BIN, "export", run, "--format", name, "-o", out], check=True, capture_output=True, timeout=60)
        assert rows[name] == read_lines(out), name
        assert rows[name], name
    for rows_, name, option in ((strict, "verl", "mode=strict"), (exchanges, "art", "form=exchanges")):
        out = str(tmp_path / "more.jsonl")
        subprocess.run([BIN, "export", run, "--format", name, "--set", option, "-o", out], check=True, capture_output=True,
                       timeout=60)
        assert rows_ == read_lines(out), option


def test_a_replaced_trainer_is_told(make, run):
    engine = make(Engine, run, make(Model), "--group-size", "2").start()
    with agentbox.connect(engine.url) as old, agentbox.connect(engine.url) as new:
        new.send_tasks([task("a")])
        with pytest.raises(agentbox.Superseded):
            next(old.groups())
        group = next(new.groups())
        with pytest.raises(agentbox.Superseded):
            old.ack(group)
        group.ack()


def test_an_engine_that_was_killed_is_waited_for(make, run):
    engine = make(Engine, run, make(Model), "--group-size", "2", "-c", "1").start()
    with agentbox.connect(engine.url) as door:
        door.send_tasks([task("a"), task("b"), task("c")], key="k")
        first = next(door.groups())
        first.ack()
        engine.kill()
        engine.start()
        door.end_tasks()
        rest = []
        for group in door.groups():
            rest.append(group.task_id)
            group.ack()
        assert [first.task_id, *rest] == ["a", "b", "c"]
    assert engine.wait(30) == 0


def test_what_was_used_is_not_too_old(make, run):
    engine = make(Engine, run, make(Model), "--group-size", "2", "-c", "1", "--weights", "1", "--max-staleness", "0").start()
    with agentbox.connect(engine.url) as door:
        door.send_tasks([task("a"), task("b"), task("c")])
        door.end_tasks()
        used = next(door.groups())  # and the trainer dies before it says so
        wait_for(lambda: door.status()["state"] == "over")
        door.policy(2)
    with agentbox.connect(engine.url) as door:
        assert list(door.groups(done={used.seq})) == []
    assert engine.wait(30) == 0
    with open(f"{run}/events.jsonl", encoding="utf-8") as lines:
        kinds = [(event["kind"], event.get("seq")) for event in map(json.loads, lines)]
    assert [seq for kind, seq in kinds if kind == "stale_group"] == [2, 3]


def test_a_run_that_broke_meanwhile_is_no_end(make, run):
    model = make(Model, broken=lambda n: n > 2)
    engine = make(Engine, run, model, "--group-size", "2", "-c", "1", "--attempts", "1", "--max-errors", "1").start()
    with agentbox.connect(engine.url) as door:
        door.send_tasks([task("a"), task("b"), task("c")])
        seen = []
        with pytest.raises(agentbox.RunFailed):
            for group in door.groups():
                wait_for(lambda: door.status()["state"] == "over")
                seen.append(group.task_id)
                group.ack()
        assert seen == ["a"]
    assert engine.wait(60) == 3


@pytest.fixture
def small_disk(tmp_path):
    """A folder with room for a megabyte."""
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "agentbox-test", place], capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_full_disk_is_waited_for(small_disk, make, tmp_path):
    engine = Engine(str(small_disk / "run"), make(Model), "--group-size", "2", "-c", "2")
    engine.listen = engine.url = f"unix:{tmp_path}/door.sock"
    engine.log.close()
    engine.log = open(tmp_path / "log", "ab")  # what is said of the disk has a place
    make(lambda: engine.start())
    with agentbox.connect(engine.url) as door:
        door.send_tasks([task("a"), task("b"), task("c")])
        door.end_tasks()
        first = next(door.groups())
        wait_for(lambda: door.status()["state"] == "over")
        room, log = small_disk / "fill", tmp_path / "log"

        def announce():  # a door is for one thread: the weights come from another
            weights, version = agentbox.door.Wire(engine.url, None, 60.0), 2
            while weights.ask("POST", "/v1/policy", {"version": version}) and "No space left" not in log.read_text():
                version += 1
            weights.close()

        def fill():
            with contextlib.suppress(OSError), open(room, "ab", buffering=0) as file:
                while True:
                    file.write(b"x" * 4096)
            return "No space left" in log.read_text()

        with concurrent.futures.ThreadPoolExecutor() as pool:
            fill()
            acknowledged, announced = pool.submit(first.ack), pool.submit(announce)
            wait_for(fill)
            room.unlink()
            assert announced.result(60) is None and acknowledged.result(60) is None
        assert [group.seq for group in door.groups() if group.ack() is None] == [2, 3]
    assert engine.wait(60) == 0
    assert json.loads((small_disk / "run/cursor.json").read_text())["acknowledged"] == 3


def test_errors_have_names(make, run):
    with pytest.raises(ValueError, match="not an address"):
        agentbox.connect("nowhere")
    with pytest.raises(agentbox.Unreachable, match="no answer for 0.2 s"):
        agentbox.connect("unix:/nonexistent/door", patience_s=0.2)
    token = "a token that is long enough"
    engine = make(Engine, run, make(Model), "--group-size", "2", env={"AGENTBOX_TOKEN": token}).start()
    with pytest.raises(agentbox.Refused) as refused:
        agentbox.connect(engine.url)
    assert refused.value.status == 401
    with agentbox.connect(engine.url, token) as door:
        with pytest.raises(agentbox.Refused, match="task 1"):
            door.send_tasks([{"task_id": 1}])
        with pytest.raises(agentbox.Refused) as refused:
            door.cancel("nobody")
        assert refused.value.code == "notfound"
        door.policy(3)
        with pytest.raises(agentbox.Refused, match="older"):
            door.policy(2)
        door.stop("enough")
