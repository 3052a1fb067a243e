"""SkyRL's own validator takes export -f skyrl in both modes, and refuses rows of two trajectories in each other's place."""
import copy
import sys
import types
import typing
from dataclasses import dataclass

import numpy
import skyrl_gym
from pydantic import TypeAdapter
from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

from _judge import check, definitions, end, line_up, lines

folder = sys.argv[1]


class Log:
    def warning(self, text):
        raise AssertionError(text)


TrajectoryID, = definitions("skyrl", "train/generators/base.py", ["TrajectoryID"], {"dataclass": dataclass})
GeneratorOutput, = definitions("skyrl", "train/generators/base.py", ["GeneratorOutput"], vars(typing) | {
    "TrajectoryID": TrajectoryID, "torch": types.SimpleNamespace(Tensor=bytes)})  # of pictures, of which there are none
validate, _ = definitions("skyrl", "train/utils/trainer_utils.py", ["validate_generator_output", "_validate_step_wise_fields"],
                          {"np": numpy, "logger": Log(), "GeneratorOutput": GeneratorOutput})


def outputs(name):
    for line in lines(folder, name):
        line["trajectory_ids"] = [TrajectoryID(**one) for one in line["trajectory_ids"]]
        yield line


def batch_of(outputs):
    """Groups one after another, as the trainer gets them."""
    out = {}
    for output in outputs:
        for key, value in output.items():
            if isinstance(value, list):
                out.setdefault(key, []).extend(value)
            else:
                out.setdefault(key, value)
    return out


def whole():
    batch = batch_of(outputs("skyrl-stub.jsonl"))
    validate(48, batch)  # 12 prompts, 4 rollouts of each: nothing of a group is missing


def stepwise():
    validate(48, batch_of(outputs("skyrl-stepwise-stub.jsonl")), step_wise=True)


def interleaved_rows_are_refused():
    output = next(o for o in outputs("skyrl-stepwise-stub.jsonl") if len(o["response_ids"]) > 4)
    turned = copy.copy(output)
    order = list(range(len(output["response_ids"])))
    order[0], order[-1] = order[-1], order[0]
    for key, value in output.items():
        if isinstance(value, list) and len(value) == len(order):
            turned[key] = [value[i] for i in order]
    try:
        validate(4, turned, step_wise=True)
    except AssertionError:
        return
    raise ValueError("the validator took rows that are out of order: it cannot tell right from wrong")


def rows(name):
    for output in outputs(name):
        for i, prompt in enumerate(output["prompt_token_ids"]):
            id = output["trajectory_ids"][i]
            mask = output["loss_masks"][i]
            if any(mask):  # a stub stands for what failed
                group = id.instance_id.lstrip("t")
                yield (f"g{group}/{id.repetition_id}", prompt + output["response_ids"][i], [0] * len(prompt) + mask,
                       [0.0] * len(prompt) + output["rollout_logprobs"][i])


def known_types():
    known = TypeAdapter(GeneratorOutput)
    for name in ("skyrl-stub.jsonl", "skyrl-stepwise-stub.jsonl"):
        for output in outputs(name):
            absent = [key for key in GeneratorOutput.__annotations__ if key not in output]  # optional ones
            known.validate_python(dict.fromkeys(absent) | output)


class Recorded(BaseTextEnv):
    """Says what the tools said in a recorded rollout, and ends with its reward."""
    def __init__(self, row, reward):
        super().__init__()
        self.left, self.reward = [m for m in row["messages"] if m["role"] in ("assistant", "tool")], reward

    def step(self, action):
        self.turns += 1
        assert self.left.pop(0)["role"] == "assistant"
        said = []
        while self.left and self.left[0]["role"] == "tool":
            said.append({"role": "user", "content": self.left.pop(0)["content"]})
        done = not self.left
        return BaseTextEnvStepOutput(observations=said, reward=self.reward if done else 0.0, done=done, metadata={})


def the_gym_drives_recorded_rollouts():
    skyrl_gym.register(id="recorded", entry_point=Recorded)
    rewards = {entry["id"]: entry["reward"] for entry in lines(folder, "calls.jsonl") if entry["scored"]}
    for row, reward in zip(lines(folder, "openai.jsonl"), rewards.values(), strict=True):
        env = skyrl_gym.make("recorded", row=row, reward=reward)
        prompt, _ = env.init([m for m in row["messages"] if m["role"] in ("system", "user")])
        assert [m["role"] for m in prompt] == ["system", "user"]
        total, done, turns = 0.0, False, 0
        while not done:
            out = env.step("an action")
            total, done, turns = total + out["reward"], out["done"], turns + 1
        assert total == reward and turns == sum(m["role"] == "assistant" for m in row["messages"])
        env.close()


check("the gym drives recorded rollouts", the_gym_drives_recorded_rollouts)
check("whole trajectories", whole)
check("step-wise rows", stepwise)
check("the types of GeneratorOutput", known_types)
check("interleaved rows are refused", interleaved_rows_are_refused)
check("whole rows line up to the token", lambda: line_up(folder, rows("skyrl-stub.jsonl"), False))
check("step-wise rows hold every sampled token once", lambda: line_up(folder, rows("skyrl-stepwise-stub.jsonl"), True))
end()
