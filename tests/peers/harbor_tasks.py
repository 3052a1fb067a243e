"""Loads exported tasks with Harbor's own classes and compares them with the folders that they were made of."""
import json
import pathlib
import sys

from harbor.models.task.task import Task

theirs, ours = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
sources = {}
for path in ours.rglob("task.json"):
    task = json.loads(path.read_text())
    sources[task["task_id"]] = (path.parent, task)
found = sorted(path.name for path in theirs.iterdir())
assert found == sorted(sources), (found, sorted(sources))
for name in found:
    folder, source = theirs / name, sources[name][1]
    assert Task.is_valid_dir(folder), name
    task = Task(folder)
    assert task.name == "agentbox/" + name, task.name
    assert task.instruction.strip() == source["description"].strip(), name
    assert task.config.metadata["agentbox"]["task_id"] == name
    assert task.config.metadata.get("difficulty") == source["metadata"].get("difficulty"), name
    assert task.config.verifier.timeout_sec == source["verifier"].get("timeout_s", 60) + 60, name
    assert task.config.environment.network_mode.value == "no-network", name
    assert (folder / "environment" / "Dockerfile").is_file() and (folder / "tests" / "test.sh").stat().st_mode & 0o111, name
    assert (folder / "solution" / "solve.sh").is_file(), name
print(f"{len(found)} tasks read by harbor")
