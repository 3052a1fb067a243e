"""A trainer that may be killed at any moment: URL FILE EVERY [SECONDS].

What it has used is in FILE, one line for each group. New weights are announced after EVERY groups; 0: somebody else does.
A group is trained on for SECONDS, and what follows its checkpoint takes as long again."""

import json
import os
import sys
import time

import agentbox

url, path, every = sys.argv[1], sys.argv[2], int(sys.argv[3])
train_s = float(sys.argv[4]) if len(sys.argv) > 4 else 0.0
done = set()
if os.path.exists(path):
    with open(path, encoding="utf-8") as lines:
        done = {json.loads(line)["seq"] for line in lines if line.endswith("\n")}

with agentbox.connect(url, consumer=f"trainer {os.getpid()}", patience_s=60) as door, open(path, "a", encoding="utf-8") as out:
    for group in door.groups(formats=["verl"], done=done):
        rows = group.to_verl()
        time.sleep(train_s)
        used = {
            "seq": group.seq,
            "id": group.id,
            "task_id": group.task_id,
            "members": group.members,
            "version": group.version,
            "version_min": group.version_min,
            "version_max": group.version_max,
            "rows": len(rows),
            "pid": os.getpid(),
        }
        out.write(json.dumps(used) + "\n")
        out.flush()
        os.fsync(out.fileno())  # its checkpoint; a kill between here and the next line must not use the group twice
        done.add(group.seq)
        if every and len(done) % every == 0:
            version = 1 + len(done) // every
            door.policy(version, f"policy@{version}")
        time.sleep(train_s)
        group.ack()
