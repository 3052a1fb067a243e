"""The Python AgentBox at the work of turns.lua: reference.py TOOL CONCURRENCY ROLLOUTS TURNS [record|none] [URL].

Prints turns per second; with the URL of a model server, its own client asks that, and CPU microseconds a turn are printed.

Its Docker calls are replaced below its own backend: a container that costs nothing and whose commands give 2 kB at
once. TOOL is `noop` (a tool that returns "ok") or `run_command` (its own, over that container). With `record` each
trajectory is written as its command line writes it: one JSON file, not synced.
"""
import asyncio
import json
import logging
import shutil
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

from agentbox import AgentConfig, ModelConfig, ParallelRunner, SandboxConfig, Task, VerifierSpec, tool
from agentbox.model.base import ModelResponse
from agentbox.model.openai_compat import OpenAICompatClient
from agentbox.sandbox import docker_backend
from agentbox.trajectory.schema import FunctionCall, ToolCall

OUTPUT = SimpleNamespace(exit_code=0, output=(b"x" * 2048, b""))


class Container:
    id = "f" * 64
    status = "running"

    def exec_run(self, *_args, **_kwargs):
        return OUTPUT

    def start(self): ...

    def reload(self): ...

    def stop(self, timeout): ...

    def remove(self, force): ...


class Docker:
    images = SimpleNamespace(get=lambda _image: None)
    containers = SimpleNamespace(create=lambda **_kwargs: Container())


class Model:
    """Calls the tool for as many turns as there are, then answers; where it is follows from the history."""

    model = "scripted"

    def __init__(self, name, turns):
        self.name, self.turns = name, turns

    async def complete(self, messages, **_kwargs):
        n = (len(messages) - 2) // 2 + 1
        if n > self.turns:
            return ModelResponse(content="done", finish_reason="stop", raw_choice=choice("done", None, "stop"))
        arguments = json.dumps({"n": n} if self.name == "noop" else {"command": f"step {n}"})
        call = ToolCall(id=f"call_{n}", function=FunctionCall(name=self.name, arguments=arguments))
        return ModelResponse(tool_calls=[call], finish_reason="tool_calls", raw_choice=choice(None, call, "tool_calls"))


def choice(content, call, finish):
    """What its own client keeps of a reply: the whole choice."""
    calls = call and [{"id": call.id, "type": "function",
                       "function": {"name": call.function.name, "arguments": call.function.arguments}}]
    return {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, "tool_calls": calls}}


@tool(name="noop", description="Does nothing.")
async def noop(sandbox, n: int) -> str:
    return "ok"


async def main():
    name, concurrency, count, turns = sys.argv[1], *map(int, sys.argv[2:5])
    record, url = sys.argv[5:6] == ["record"], sys.argv[6] if len(sys.argv) > 6 else None
    logging.disable(logging.CRITICAL)
    docker_backend.get_client = lambda _client=None: Docker()
    out = Path(tempfile.mkdtemp(prefix="agentbox-reference-"))
    agent = AgentConfig(tools="custom" if name == "noop" else "shell", max_steps=100,
                        custom_tools=[noop] if name == "noop" else [])
    model = OpenAICompatClient(ModelConfig(model="m", base_url=url, api_key="EMPTY")) if url else Model(name, turns)
    runner = ParallelRunner(concurrency=concurrency, model=model, agent=agent,
                            sandbox=SandboxConfig(ensure_pytest=False))
    task = Task(task_id="noop", description="Do nothing.", verifier=VerifierSpec(type="command", command="true"))
    try:
        began, cpu = time.monotonic(), time.process_time()
        done = await runner.run_tasks([task], n_per_task=count, progress=False,
                                      on_trajectory=lambda t: record and t.save(out / f"{t.task_id}_{t.run_id}.json"))
        took, cpu = time.monotonic() - began, time.process_time() - cpu
    finally:
        shutil.rmtree(out)
    assert all(t.metrics.steps == turns and t.reward == 1.0 for t in done), done[0].error
    print(f"{cpu / (count * turns) * 1e6 if url else count * turns / took:.0f}")


asyncio.run(main())
