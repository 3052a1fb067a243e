"""Hands groups that agentbox exported (`-f art`, either form) to OpenPipe ART.

    python3 examples/art_grpo_offline.py runs/grpo/groups.jsonl
    python3 examples/art_grpo_offline.py runs/grpo/groups.jsonl --backend local --base-model Qwen/Qwen3-4B --model fixer

Needs openpipe-art 0.5.20 or later. Without --backend it says what would be trained on and stops before the training call.
"""
import argparse
import asyncio
import json
import statistics

import art
from art.trajectories import PydanticException
from openai.types.chat.chat_completion import Choice


def trajectory(line):
    """ART reads exchanges as they are; in the older form an item with a finish reason is a Choice, which is what it trains on."""
    histories = [line, *line.get("additional_histories", [])]
    for history in histories:
        if "messages_and_choices" in history:
            history["messages_and_choices"] = [
                Choice(**item) if "finish_reason" in item else item for item in history["messages_and_choices"]]
    return art.Trajectory.model_validate(line)


def group_of(line):
    """Rollouts without a score are exceptions of their group: ART counts them and does not take them for reward 0."""
    return art.TrajectoryGroup(
        [trajectory(one) for one in line["trajectories"]], metadata=line["metadata"],
        exceptions=[PydanticException.model_validate(one) for one in line["exceptions"]])


def groups_of(path):
    with open(path, encoding="utf-8") as file:
        for text in file:
            yield group_of(json.loads(text))


def sampled_tokens(trajectory):
    """How many ids ART finds to train on, without a tokenizer; None when the server sent none."""
    try:
        histories = trajectory.tokenize(multi_history=True).histories
    except Exception as problem:
        print(f"  no token ids: {problem}")
        return None
    return sum(bool(flag & art.trajectories.TokenFlag.SAMPLED) for history in histories for flag in history.flags)


def describe(group):
    rewards = [one.reward for one in group.trajectories]
    mean = statistics.mean(rewards) if rewards else 0.0
    print(f"{group.metadata['group_id']}: {len(rewards)} trajectories, {len(group.exceptions)} exceptions, "
          f"advantages {[round(reward - mean, 3) for reward in rewards]}")
    counts = [sampled_tokens(one) for one in group.trajectories]
    print(f"  sampled tokens {counts}")
    return len(set(rewards)) > 1


async def registered(options):
    """A model to train, and what trains it."""
    model = art.TrainableModel(name=options.model, project=options.project, base_model=options.base_model)
    if options.backend == "local":
        from art.local import LocalBackend
        backend = LocalBackend()
    else:
        backend = art.ServerlessBackend()
    await model.register(backend)
    return model, backend


async def train(groups, options):
    model, backend = await registered(options)
    print(await backend.train(model, groups, learning_rate=options.learning_rate))


def add_options(parser):
    parser.add_argument("--backend", choices=["local", "serverless"])
    parser.add_argument("--model", default="agentbox")
    parser.add_argument("--project", default="agentbox")
    parser.add_argument("--base-model", default="Qwen/Qwen3-4B")
    parser.add_argument("--learning-rate", type=float, default=5e-6)


def main():
    parser = argparse.ArgumentParser(description="Train ART on exported groups.")
    parser.add_argument("groups")
    add_options(parser)
    options = parser.parse_args()
    groups = list(groups_of(options.groups))
    useful = [group for group in groups if describe(group)]
    print(f"{len(useful)} of {len(groups)} groups have something to learn from")
    if options.backend:
        asyncio.run(train(useful, options))


if __name__ == "__main__":
    main()
