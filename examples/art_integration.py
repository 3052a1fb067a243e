"""Rollouts of one task as a TrajectoryGroup of OpenPipe ART, from Python: the engine runs and exports them, ART reads them.

    python3 examples/art_integration.py qwen3 http://127.0.0.1:8000/v1
    python3 examples/art_integration.py qwen3 http://127.0.0.1:8000/v1 tasks/sum_list --n 8

Needs openpipe-art 0.5.20 or later, `agentbox` on the PATH (or its place in AGENTBOX), and a server that sends token ids. Started again it
makes another group.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import uuid

from art_grpo_offline import describe, groups_of

HERE = pathlib.Path(__file__).resolve().parent
AGENTBOX = os.environ.get("AGENTBOX", "agentbox")


def rollouts(task, model, base_url, n, out):
    """Runs the task n times at once; gives the run's folder. What was not solved is a result, too."""
    out.mkdir(parents=True, exist_ok=True)
    run_id, config = f"group-{uuid.uuid4().hex[:8]}", out / "agentbox.json"
    config.write_text(json.dumps({"model": {
        "model": model, "base_url": base_url, "tokens": "require", "temperature": 1.0}}), encoding="utf-8")
    done = subprocess.run([AGENTBOX, "run-dir", str(task), "--n", str(n), "-o", str(out), "--run-id", run_id],
                          env=os.environ | {"AGENTBOX_CONFIG": str(config)})
    if done.returncode not in (0, 1):
        sys.exit(done.returncode)
    return out / run_id


def main():
    parser = argparse.ArgumentParser(description="Make a group for ART.")
    parser.add_argument("model")
    parser.add_argument("base_url")
    parser.add_argument("task", nargs="?", default=HERE.parent / "tasks" / "fix_fizzbuzz")
    parser.add_argument("--n", type=int, default=4)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/art"))
    options = parser.parse_args()
    run = rollouts(options.task, options.model, options.base_url, options.n, options.out)
    path = f"{run}.art.jsonl"
    subprocess.run([AGENTBOX, "export", str(run), "-f", "art", "-O", "form=exchanges", "-o", path], check=True)
    for group in groups_of(path):
        useful = describe(group)
        print(f"{path}: {'await backend.train(model, [group]) is next' if useful else 'nothing to learn from: all rewards are the same'}")


if __name__ == "__main__":
    main()
