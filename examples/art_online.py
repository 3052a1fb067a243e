"""Trains OpenPipe ART while the policy goes on: takes groups from `agentbox serve` as they are closed, trains, and announces the new
weights, so that the next rollouts are sampled from them.

    agentbox serve runs/art-online --tasks tasks --epochs 10 --last --group-size 4 --weights 0 -m policy --base-url URL &
    python3 examples/art_online.py http://127.0.0.1:7000
    python3 examples/art_online.py http://127.0.0.1:7000 --backend local --base-model Qwen/Qwen3-4B --model fixer

Needs openpipe-art 0.5.20 or later, and the door's package: pip install ./python/agentbox. Without --backend it says what would be
trained on, acknowledges it, and stops before each training call. With one it says first where to sample: `serve` is started with that
--base-url and -m. The numbers of used groups are kept in a file, so that a kill at any moment uses none twice.
"""
import argparse
import asyncio
import os
import pathlib

import agentbox
from art_grpo_offline import add_options, describe, group_of, registered


class Used:
    """The numbers of the groups that were trained on, on the disk before they are acknowledged."""

    def __init__(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = path.open("a+", encoding="ascii")
        self.file.seek(0)
        text = self.file.read()
        self.file.truncate(text.rfind("\n") + 1)  # a kill may have cut the last line
        self.seqs = {int(line) for line in text.split("\n")[:-1]}

    def add(self, groups):
        self.file.write("".join(f"{group.seq}\n" for group in groups))
        self.file.flush()
        os.fsync(self.file.fileno())
        self.seqs.update(group.seq for group in groups)


def batches(door, used, size):
    """Lists of so many groups, the last one of what is left; never more than the engine gives out unacknowledged."""
    batch, size = [], min(size, door.info["max_lead"])
    for group in door.groups(formats=["art:form=exchanges"], done=used.seqs):
        batch.append(group)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


async def loop(door, used, size, train):
    """`train` gets ART's groups and gives the version of the new weights and the name that the server knows them by, or nothing."""
    source, steps = batches(door, used, size), 0
    while batch := await asyncio.to_thread(next, source, None):  # ART may serve the model from this thread: never block it
        groups = [group_of(line) for group in batch for line in group.to_art(form="exchanges")]
        useful = [group for group in groups if describe(group)]
        weights = await train(useful) if useful else None
        used.add(batch)
        if weights:
            door.policy(*weights)  # before the acknowledgement, which lets the next rollouts begin
        door.ack(*batch)
        steps += 1
        print(f"step {steps}: {len(useful)} of {len(groups)} groups have something to learn from, "
              f"versions {[(group.version_min, group.version_max) for group in batch]}")


async def run(options):
    model = backend = None
    if options.backend:
        model, backend = await registered(options)
        print(f"sample from {model.inference_base_url} as {model.get_inference_name()}", flush=True)

    async def train(groups):
        if not backend:
            return None
        result = await backend.train(model, groups, learning_rate=options.learning_rate)
        return result.step, model.get_inference_name(result.step)

    with agentbox.connect(options.door, consumer="art", patience_s=3600) as door:
        await loop(door, Used(pathlib.Path(options.used)), options.groups_per_step, train)


def main():
    parser = argparse.ArgumentParser(description="Train ART online, on groups from agentbox serve.")
    parser.add_argument("door", help="http://HOST:PORT or unix:PATH; its token in AGENTBOX_TOKEN")
    parser.add_argument("--groups-per-step", type=int, default=2)
    parser.add_argument("--used", default="runs/art-online.used", help="a file for the numbers of used groups, one for each run")
    add_options(parser)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
