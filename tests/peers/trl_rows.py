"""TRL takes what is exported for it: rows for rollout_func by the lines of GRPOTrainer that read them, samples of the asynchronous
trainer, and rows of messages by its own data utilities with a tokenizer that is made here."""
import ast
import importlib.util
import pathlib
import sys
from dataclasses import dataclass

import datasets
import numpy
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from trl import data_utils

from _judge import check, definitions, end, line_up, lines

folder = sys.argv[1]
datasets.disable_progress_bars()

TEMPLATE = """{% for m in messages %}<|{{ m.role }}|>{% if m.content is not none %}{{ m.content }}{% endif %}
{%- for c in m.tool_calls or [] %}<call>{{ c.function.name }} {{ c.function.arguments }}</call>{% endfor %}<|end|>
{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"""


def tokenizer():
    byte_level = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, merges=[]))
    byte_level.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    byte_level.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=byte_level, chat_template=TEMPLATE)


def reading_lines():
    """The branch of GRPOTrainer._generate that calls rollout_func and takes its answer apart, as a function."""
    path = pathlib.Path(importlib.util.find_spec("trl").origin).parent / "trainer/grpo_trainer.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    generate = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "_generate")
    branch = next(node for node in generate.body if isinstance(node, ast.If) and "rollout_func" in ast.unparse(node.test))
    returned = ast.parse("return prompt_ids, completion_ids, logprobs, extra_fields").body
    arguments = ast.parse("def read(self, prompts): pass").body[0]
    arguments.body = branch.body + returned
    space = {}
    exec(compile(ast.fix_missing_locations(ast.Module(body=[arguments], type_ignores=[])), str(path), "exec"), space)
    return space["read"]


class Trainer:
    use_vllm = False

    def __init__(self, rollout_func):
        self.rollout_func = rollout_func


def as_columns(name):
    rows = lines(folder, name)
    return {key: [row.get(key) for row in rows] for key in rows[0]}


def rows_of(name):
    columns = as_columns(name)
    prompts = [[{"role": "user", "content": "Make run.sh exit 0."}]] * len(columns["prompt_ids"])
    prompt_ids, completion_ids, logprobs, extra = reading_lines()(Trainer(lambda prompts, trainer: columns), prompts)
    mask = extra.pop("env_mask")
    assert len(extra["reward"]) == len(prompts) and all(isinstance(value, float) for value in extra["reward"])
    for i, id in enumerate(extra["trajectory_id"]):
        assert len(completion_ids[i]) == len(logprobs[i]) == len(mask[i])
        yield (id, prompt_ids[i] + completion_ids[i], [0] * len(prompt_ids[i]) + mask[i], [0.0] * len(prompt_ids[i]) + logprobs[i])


def a_missing_key_is_noticed():
    columns = as_columns("trl-all.jsonl")
    del columns["logprobs"]
    try:
        reading_lines()(Trainer(lambda prompts, trainer: columns), [])
    except ValueError as problem:
        assert "logprobs" in str(problem)
        return
    raise AssertionError("rows without log-probs were taken")


def samples():
    sample, = definitions("trl", "experimental/async_grpo/async_rollout_worker.py", ["RolloutSample"],
                          {"dataclass": dataclass, "np": numpy, "Messages": list})
    groups = {}
    for row in lines(folder, "trl-all.jsonl"):
        groups.setdefault(row["group_id"], []).append(row)
    for group in groups.values():
        mean = sum(row["reward"] for row in group) / len(group)
        for row in group:
            n = len(row["prompt_ids"])
            made = sample(
                prompt=[], completion=[], input_ids=numpy.array(row["prompt_ids"] + row["completion_ids"], numpy.int64),
                completion_mask=numpy.array([0] * n + row["env_mask"]), advantage=row["reward"] - mean,
                old_log_probs=numpy.array([0.0] * n + row["logprobs"], numpy.float32), model_version=row["model_version"],
                group_id=int(row["group_id"].split("/")[1][1:]), metrics={"reward": row["reward"]})
            assert made.input_ids.shape == made.completion_mask.shape == made.old_log_probs.shape
            assert not made.old_log_probs[made.completion_mask == 0].any()
            assert made.model_version == 10 + made.group_id


def loaded(name):
    return datasets.load_dataset("json", data_files=f"{folder}/{name}", split="train", cache_dir=f"{folder}/cache")


def templated(name, keys):
    made, rows = tokenizer(), loaded(name)
    assert len(rows) > 10
    for row in rows:
        assert data_utils.is_conversational(row)
        text = data_utils.apply_chat_template(row, made)
        assert set(keys) <= set(text), (keys, list(text))
        for key in keys:
            assert text[key] and made.decode(made(text[key])["input_ids"]) == text[key]
            assert "None" not in text[key], text[key]


def prompts_are_not_in_completions():
    made = tokenizer()
    for row in loaded("prompt-completion-string.jsonl"):
        text = data_utils.apply_chat_template(row, made)
        assert "<|system|>" in text["prompt"] and "<|system|>" not in text["completion"]
        assert text["completion"].rstrip().endswith("<|end|>")


def pairs_can_be_unpaired():
    pairs = loaded("preference-string.jsonl")
    single = data_utils.unpair_preference_dataset(pairs)
    assert len(single) == 2 * len(pairs) and sorted(set(single["label"])) == [False, True]


def labelled():
    """A message and a label each, as KTO wants them: good is what reached the threshold."""
    wanted = [entry["reward"] >= 0.5 for entry in lines(folder, "calls.jsonl") if entry["scored"]]
    rows = loaded("preference-unpaired-string.jsonl")
    assert sorted(rows["label"]) == sorted(wanted) and True in wanted and False in wanted
    made = tokenizer()
    for row in rows:
        text = data_utils.apply_chat_template(data_utils.maybe_extract_prompt(row), made)
        assert text["prompt"].endswith("<|assistant|>") and text["completion"].endswith("<|end|>\n"), text


def pretokenized():
    """Labels are the sampled ids where they were sampled: the rows are those for rollout_func, whose log-probs say so."""
    rows = loaded("pretokenized.jsonl")
    for row, named in zip(rows, lines(folder, "trl-all.jsonl"), strict=True):
        assert row["input_ids"] == named["prompt_ids"] + named["completion_ids"] and row["attention_mask"] == [1] * len(row["input_ids"])
        mask = [0] * len(named["prompt_ids"]) + named["env_mask"]
        assert row["labels"] == [token if trained else -100 for token, trained in zip(row["input_ids"], mask)]
        yield named["trajectory_id"], row["input_ids"], mask, [0.0] * len(named["prompt_ids"]) + named["logprobs"]


def packed_rows_keep_every_label():
    rows = loaded("pretokenized.jsonl")
    packed = data_utils.pack_dataset(rows, seq_length=64)
    assert sum(label != -100 for row in packed for label in row["labels"]) == sum(label != -100 for row in rows for label in row["labels"])


check("rows for rollout_func line up to the token", lambda: line_up(folder, rows_of("trl-all.jsonl"), False))
check("rows of single calls hold every sampled token once", lambda: line_up(folder, rows_of("trl-stepwise-all.jsonl"), True))
check("a missing key is noticed", a_missing_key_is_noticed)
check("samples of the asynchronous trainer", samples)
check("messages", lambda: templated("openai.jsonl", ["text"]))
check("prompt and completion", lambda: templated("prompt-completion-string.jsonl", ["prompt", "completion"]))
check("prompts are not in completions", prompts_are_not_in_completions)
check("preference pairs", lambda: templated("preference-string.jsonl", ["chosen", "rejected"]))
check("pairs can be unpaired", pairs_can_be_unpaired)
check("labelled completions", labelled)
check("token rows line up to the token", lambda: line_up(folder, pretokenized(), False))
check("packed rows keep every label", packed_rows_keep_every_label)
end()
