"""Loads the documents of agentbox_rl.lua with the reference's own model, and writes them in its own way."""
import importlib
import importlib.util
import json
import pathlib
import sys
import types

# Its top module wants a Docker client; the schema alone needs pydantic.
package = types.ModuleType("agentbox")
package.__path__ = [str(pathlib.Path(importlib.util.find_spec("agentbox").origin).parent)]
sys.modules["agentbox"] = package
parent = types.ModuleType("agentbox.trajectory")
parent.__path__ = [package.__path__[0] + "/trajectory"]
sys.modules["agentbox.trajectory"] = parent
schema = importlib.import_module("agentbox.trajectory.schema")

out = pathlib.Path(sys.argv[1])
(out / "theirs").mkdir()
failed = 0
with open(out / "theirs.jsonl", "w", encoding="utf-8") as lines:
    for path in sorted((out / "ours").glob("*.json")):
        trajectory = schema.Trajectory.load(path)
        trajectory.save(out / "theirs" / path.name)
        lines.write(trajectory.model_dump_json() + "\n")
        ours, theirs = path.read_text(encoding="utf-8"), (out / "theirs" / path.name).read_text(encoding="utf-8")
        if json.loads(ours) != json.loads(theirs) or list(json.loads(ours)) != list(json.loads(theirs)):
            failed += 1
            print(f"not ok - {path.name} changes when the reference writes it")
            differences = [pair for pair in zip(ours.split("\n"), theirs.split("\n")) if pair[0] != pair[1]]
            for a, b in differences[:5]:
                print(f"#   ours   {a}\n#   theirs {b}")
sys.exit(failed > 0)
