"""The online example with the real package: groups from `agentbox serve` are ART's, with every token that the server sampled; new weights
reach the rollouts; an example that is killed and started again uses no group twice and none is lost."""
import asyncio
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import agentbox
import art
from art.trajectories import TokenFlag

from _judge import check, end

BIN, HERE, folder = sys.argv[1], pathlib.Path(__file__).resolve().parent, pathlib.Path(sys.argv[2])
EXAMPLES = HERE.parent.parent / "examples"
sys.path.insert(0, str(EXAMPLES))
import art_online  # noqa: E402

TASKS, SIZE = 8, 2


def steps():
    """Two rollouts: one that writes what its task wants, and one that only says so. Ids tell the turn; log-probs are -0.25."""
    def said(ids, prompt, **more):
        return {"token_ids": len(ids), "logprobs": len(ids), "extra": {"prompt_token_ids": prompt}, **more}
    write = {"name": "write_file", "arguments": {"path": "hello.txt", "content": "hello"}}
    return [said([100, 101], [1, 2], tool_calls=[write]), said([100, 101, 102], [1, 2, 100, 101, 7], content="done"),
            said([100], [1, 2], content="done")]


class Model:
    def __init__(self):
        script = {"steps": steps() * (TASKS + 2), "shared": True}
        self.process = subprocess.Popen(
            [sys.executable, str(HERE.parent / "support/fakellm.py"), "--script", json.dumps(script), "--watch-pid", str(os.getpid())],
            stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{self.process.stdout.readline().strip()}/v1"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Engine:
    """One rollout at a time, so that the server's steps go to one after another."""
    def __init__(self, name, model):
        tasks = folder / "tasks"
        for i in range(TASKS):
            (tasks / f"t{i}").mkdir(parents=True, exist_ok=True)
            checks = {"checks": [{"path": "hello.txt", "equals": "hello"}]}
            (tasks / f"t{i}/task.json").write_text(json.dumps({
                "task_id": f"t{i}", "description": "Write hello.", "verifier": {"type": "files", "params": checks}}), encoding="utf-8")
        self.run, self.url, self.log = folder / name, f"unix:{folder / name}.sock", open(folder / f"{name}.log", "ab")
        self.process = subprocess.Popen(
            [BIN, "serve", str(self.run), "--tasks", str(tasks), "--last", "--group-size", str(SIZE), "-c", "1", "--max-lead", "2",
             "--weights", "0", "-m", "policy@0", "--base-url", model.url, "--backend", "none", "--listen", self.url],
            stdout=self.log, stderr=self.log, cwd=folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
        self.log.close()


def tokens(group):
    """Each rollout's reward, all its ids, and those that ART trains. Weights that change inside a rollout make two histories of it, for ART
    goes by the model's name; together they still train each id once."""
    for one in group.trajectories:
        histories, sampled = one.tokenize(multi_history=True).histories, []
        assert len(histories) == 1 + (one.initial_policy_version != one.final_policy_version)
        for history in histories:
            sampled += [token for token, flag in zip(history.tokens, history.flags) if flag & TokenFlag.SAMPLED]
            assert all(lp == -0.25 for lp, flag in zip(history.logprobs, history.flags) if flag & TokenFlag.SAMPLED)
        yield one.reward, histories[-1].tokens, sampled


def a_loop_with_new_weights():
    """`train` stands where backend.train is called: it gets what ART would train on, and gives the version that comes of it."""
    seen, versions = [], []
    with Model() as model, Engine("loop", model) as engine:
        async def train(groups):
            assert all(isinstance(group, art.TrajectoryGroup) for group in groups)
            for group in groups:
                assert [one.reward for one in group.trajectories] == [1.0, 0.0], group
                assert list(tokens(group)) == [
                    (1.0, [1, 2, 100, 101, 7, 100, 101, 102], [100, 101, 100, 101, 102]), (0.0, [1, 2, 100], [100])]
                seen.append(group.trajectories[0].metadata["scenario_id"])
                versions.append({(one.initial_policy_version, one.final_policy_version) for one in group.trajectories})
            return len(seen), f"policy@{len(seen)}"

        with agentbox.connect(engine.url) as door:
            asyncio.run(art_online.loop(door, art_online.Used(folder / "loop.used"), 1, train))
        assert engine.process.wait(60) == 1  # done, and not all was solved
    assert sorted(seen) == [f"t{i}" for i in range(TASKS)], seen
    newest = [max(last for _, last in group) for group in versions]
    assert newest[0] == 0 and newest == sorted(newest) and newest[-1] >= TASKS - 4, newest


def killed_and_started_again():
    """Up to the training call, in a process of its own, which is killed after its first step."""
    used = folder / "killed.used"
    with Model() as model, Engine("killed", model) as engine:
        command = [sys.executable, str(EXAMPLES / "art_online.py"), engine.url, "--used", str(used), "--groups-per-step", "2"]
        first = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"})
        for line in first.stdout:
            if line.startswith("step 1"):
                break
        first.kill()
        first.wait()
        first.stdout.close()
        before = used.read_text()
        again = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert again.returncode == 0, again.stderr
        assert engine.process.wait(60) == 1
    seqs = used.read_text().split()
    assert used.read_text().startswith(before) and len(before.split()) == 2
    assert sorted(map(int, seqs)) == list(range(1, TASKS + 1)), seqs
    assert again.stdout.count("2 of 2 groups have something to learn from") == TASKS // 2 - 1, again.stdout
    assert "sampled tokens [5, 1]" in again.stdout


def a_cut_line_is_no_number():
    path = folder / "cut.used"
    path.write_text("1\n2\n12")
    used = art_online.Used(path)
    assert used.seqs == {1, 2}
    used.file.close()
    assert path.read_text() == "1\n2\n"


def the_integration_example():
    with Model() as model:
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / "art_integration.py"), "policy@0", model.url, str(folder / "tasks/t0"), "--n", "2", "--out",
             str(folder / "integration")], capture_output=True, text=True, timeout=120, cwd=folder,
            env=os.environ | {"AGENTBOX": BIN, "AGENTBOX_BACKEND": "none"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 trajectories, 0 exceptions, advantages [" in done.stdout and "is next" in done.stdout, done.stdout
    sampled = re.search(r"sampled tokens \[(\d), (\d)\]", done.stdout)  # two at once share the server's steps
    assert sampled and int(sampled[1]) + int(sampled[2]) == 6, done.stdout


check("a loop with new weights", a_loop_with_new_weights)
check("killed and started again", killed_and_started_again)
check("a line that a kill has cut is no number", a_cut_line_is_no_number)
check("the integration example", the_integration_example)
end()
