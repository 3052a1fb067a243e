"""The Python AgentBox's side of agentbox_suite.sh: writes a suite, checks one of ours, reads our report."""

import json
import sys
from pathlib import Path

from agentbox.benchmark.compare import compare_reports
from agentbox.benchmark.hash import compute_suite_content_hash
from agentbox.benchmark.loader import load_suite, save_suite
from agentbox.benchmark.schema import BenchmarkReport, BenchmarkSuite, BenchmarkSuiteManifest, ScoringConfig, SetupCheckSpec
from agentbox.config import AgentConfig, SandboxConfig
from agentbox.tasks.schema import Task, VerifierSpec


def write(folder):
    tasks = [
        Task(
            task_id=f"odd_{n}",
            description="Zeile\nzwei é \u2028 \x7f",
            starter_files={"m.py": "print('ü')\n", "deep/er/x.txt": "" if n else "\t\r\n"},
            setup_commands=["true"] if n else [],
            verifier=VerifierSpec(type="command", command="test -e done", timeout_s=30, reward_success=[1, 2.5, -1e-7][n]),
            metadata={"f": [1e-7, 1e16, 0.1][n], "i": 2**70, "nested": {"b": [], "a": {}}, "e": None, "Ω": True},
            system_prompt_extra=[None, "", "extra"][n],
            allowed_tools=[None, ["run_command"], None][n],
            max_steps=[None, 3, None][n],
        )
        for n in range(3)
    ]
    manifest = BenchmarkSuiteManifest(
        suite_id="theirs",
        name="Theirs",
        sandbox=SandboxConfig(image="host", env={"Ä": "ö", "A": "1"}),
        agent=AgentConfig(max_steps=5, step_penalty=0.0, episode_timeout_s=60),
        scoring=ScoringConfig(setup_checks=[SetupCheckSpec(name="sh", command="true", timeout_s=7)]),
        seed=None,
    )
    save_suite(BenchmarkSuite(manifest=manifest, tasks=tasks).freeze(), folder)


def check(folder):
    suite = load_suite(folder)
    assert suite.manifest.content_hash and suite.verify_integrity(strict=True)
    assert suite.manifest.n_per_task == 3 and suite.manifest.seed == 7 and len(suite.tasks) == 3
    before = suite.manifest.content_hash
    save_suite(suite.freeze(), folder)
    again = load_suite(folder)
    assert again.verify_integrity(strict=True) and again.manifest.content_hash == before
    print("ok - ours validates there, and is the same when they have frozen it")


def report(folder):
    ours = BenchmarkReport.load(Path(folder) / "report.json")
    row = ours.leaderboard[0]
    assert (row["model_id"], row["n"], row["success_rate"]) == ("s", 6, 0.5), row
    assert [t.successes for t in ours.models[0].by_task] == [1, 1, 1]
    assert ours.models[0].aggregate.by_status == {"success": 3, "failed": 3}
    result = compare_reports(ours, ours)
    assert result.hash_match and result.deltas[0]["delta_success_rate"] == 0
    rows = list((Path(folder) / "models" / "s" / "trajectories").glob("*.json"))
    assert len(rows) == 6 and all(json.loads(r.read_text())["task_id"].startswith("odd_") for r in rows)
    print("ok - their tools read our report")


def hash_of(folder, expected):
    suite = load_suite(folder)
    assert compute_suite_content_hash(suite.tasks, suite.manifest) == expected
    print("ok - the same hash of the odd suite")


{"write": write, "check": check, "report": report, "hash": hash_of}[sys.argv[1]](*sys.argv[2:])
