"""Usage: openai_types.py FILE. Validates the bodies that openai_types.lua wrote with the package's own types."""
import json
import sys
from collections import Counter

from openai.types.chat import ChatCompletion
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming, CompletionCreateParamsStreaming
from pydantic import TypeAdapter

WHOLE = TypeAdapter(CompletionCreateParamsNonStreaming)
STREAM = TypeAdapter(CompletionCreateParamsStreaming)


def exhaust(value):
    """Iterables of the parameter types are validated only when they are walked."""
    if isinstance(value, dict):
        for item in value.values():
            exhaust(item)
    elif not isinstance(value, (str, bytes)) and hasattr(value, "__iter__"):
        for item in value:
            exhaust(item)


def main():
    seen = Counter()
    with open(sys.argv[1]) as file:
        for line in file:
            entry = json.loads(line)
            completion = ChatCompletion.model_validate_json(entry["response"], strict=True)
            assert completion.object == "chat.completion" and completion.choices, entry
            request = json.loads(entry["request"])
            exhaust((STREAM if request.get("stream") else WHOLE).validate_python(request))
            assert all(value is not None for value in request.values()), request
            seen[entry["kind"]] += 1
    for kind in ("server", "stream", "fn", "scripted", "replay", "tokens"):
        assert seen[kind] > 1, f"nothing of {kind}"
    print("ok -", ", ".join(f"{n} of {kind}" for kind, n in seen.items()), "are valid")


main()
