"""LLaMA-Factory's converters take export -f sharegpt and -f openai as data sets of their own, pass over no row, and its formatters make
of the calls and tools what its templates show; what they read back is what was recorded."""
import importlib
import json
import sys
import types
from dataclasses import dataclass
from typing import Any, Literal

import datasets

from _judge import check, definitions, end, lines, without_tops

folder = sys.argv[1]
datasets.disable_progress_bars()


class Log:
    """The converters say in a warning what they pass over."""
    def warning_rank0(self, text):
        raise AssertionError(text)


def modules():
    without_tops("llamafactory", "data", "extras")
    log = types.ModuleType("llamafactory.extras.logging")
    log.get_logger = lambda name: Log()
    sys.modules[log.__name__] = sys.modules["llamafactory.extras"].logging = log
    return [importlib.import_module(f"llamafactory.data.{name}") for name in ("converter", "formatter", "tool_utils")]


DatasetAttr, = definitions("llamafactory", "data/parser.py", ["DatasetAttr"], {"dataclass": dataclass, "Any": Any, "Literal": Literal})
converter, formatter, tool_utils = modules()

# As dataset_info.json says it.
SHAREGPT = {"formatting": "sharegpt", "columns": {"messages": "conversations", "system": "system", "tools": "tools"}}
OPENAI = {"formatting": "openai", "columns": {"messages": "messages", "tools": "tools"}, "tags": {
    "role_tag": "role", "content_tag": "content", "user_tag": "user", "assistant_tag": "assistant", "observation_tag": "tool",
    "function_tag": "function_call", "system_tag": "system"}}


def converted(name, info):
    attr = DatasetAttr("file", name)
    attr.join(info)
    convert = converter.get_dataset_converter(info["formatting"], attr, None)
    rows = datasets.load_dataset("json", data_files=f"{folder}/{name}", split="train", cache_dir=f"{folder}/cache-{name}")
    return [convert(row) for row in rows]


def every_row_is_taken(name, info, count):
    rows = converted(name, info)
    assert len(rows) == len(lines(folder, name)) == count, (len(rows), count)
    for row in rows:
        turns = row["_prompt"] + row["_response"]
        assert row["_prompt"] and [turn["role"] for turn in row["_response"]] == ["assistant"]
        for i, turn in enumerate(turns):
            assert turn["role"] in (("user", "observation"), ("assistant", "function"))[i % 2], turns
            assert isinstance(turn["content"], str) and turn["content"].strip(), turns
        assert row["_system"].strip() == "You fix shell scripts."
        assert json.loads(row["_tools"])[0]["function"]["name"] == "sh"


def calls_are_what_was_recorded(name, info):
    """Through the formatter of Qwen's templates and back; the other templates take them, too."""
    recorded = [[[(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in message["tool_calls"]]
                 for message in row["messages"] if message.get("tool_calls")] for row in lines(folder, "openai.jsonl")]
    texts = [row["messages"][1]["content"] for row in lines(folder, "openai.jsonl")]
    seen = 0
    for row in converted(name, info):
        wanted = list(recorded[texts.index(row["_prompt"][0]["content"])])
        for turn in row["_prompt"]:
            if turn["role"] == "function":
                made, = formatter.FunctionFormatter(slots=["{{content}}"], tool_format="qwen").apply(content=turn["content"])
                found = tool_utils.get_tool_utils("qwen").tool_extractor(made)
                assert [(call.name, json.loads(call.arguments)) for call in found] == wanted.pop(0), (made, wanted)
                for other in tool_utils.TOOLS if len(found) == 1 else ():  # not every template has several calls at once
                    assert formatter.FunctionFormatter(slots=["{{content}}"], tool_format=other).apply(content=turn["content"])[0]
                seen += 1
        assert not wanted, wanted
    assert seen >= 4, seen


def tools_are_shown():
    for row in converted("sharegpt.jsonl", SHAREGPT):
        for name in tool_utils.TOOLS:
            text, = formatter.ToolFormatter(tool_format=name).apply(content=row["_tools"])
            assert "sh" in text and "cmd" in text, (name, text)


def a_row_out_of_turn_is_noticed():
    attr = DatasetAttr("file", "turned")
    attr.join(SHAREGPT)
    row = lines(folder, "sharegpt.jsonl")[0]
    row["conversations"] = row["conversations"][1:]
    try:
        converter.get_dataset_converter("sharegpt", attr, None)(row)
    except AssertionError as problem:
        assert "Invalid role tag" in str(problem)
        return
    raise ValueError("the converter took a row out of turn: it cannot tell right from wrong")


# Text beside a call cannot be said in ShareGPT: that rollout is left out, or loses the text.
check("ShareGPT", lambda: every_row_is_taken("sharegpt.jsonl", SHAREGPT, 4))
check("ShareGPT, texts beside calls dropped", lambda: every_row_is_taken("sharegpt-drop_text.jsonl", SHAREGPT, 5))
check("messages", lambda: every_row_is_taken("openai.jsonl", OPENAI, 5))
check("calls of ShareGPT", lambda: calls_are_what_was_recorded("sharegpt-drop_text.jsonl", SHAREGPT))
check("calls of messages with arguments as objects", lambda: calls_are_what_was_recorded("openai-object.jsonl", OPENAI))
check("tools", tools_are_shown)
check("a row out of turn is noticed", a_row_out_of_turn_is_noticed)
end()
