"""LangGraph with PostgresSaver: graphs of so many supersteps, one after the other. `python langgraph_steps.py URL STEPS RUNS [async]`.

Prints JSON: versions, seconds of each run, connections. durability="sync": a checkpoint is written before the next step begins.
"""

import asyncio
import json
import sys
import time
from importlib.metadata import version
from typing import Any, TypedDict
from uuid import uuid4

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import END, START, StateGraph
from psycopg.rows import dict_row

SETTINGS = ("synchronous_commit", "fsync", "full_page_writes", "default_transaction_isolation")

TEXT = "The account has two open invoices, and both of them are due before the end of May."  # as ours has


class State(TypedDict):
    number: int
    steps: int
    text: str


def look(state: State) -> dict[str, Any]:
    return {"number": state["number"] + 1, "text": TEXT}


def graph() -> StateGraph:
    made = StateGraph(State)
    made.add_node("look", look)
    made.add_edge(START, "look")
    made.add_conditional_edges("look", lambda state: END if state["number"] >= state["steps"] else "look")
    return made


def config(steps: int) -> dict[str, Any]:
    return {"configurable": {"thread_id": str(uuid4())}, "recursion_limit": steps + 10}


def begin(steps: int) -> State:
    return {"number": 0, "steps": steps, "text": ""}


def main(url: str, steps: int, runs: int) -> None:
    took = []
    with psycopg.connect(url, autocommit=True, prepare_threshold=0, row_factory=dict_row) as connection:  # as from_conn_string does
        saver = PostgresSaver(connection)
        saver.setup()
        app = graph().compile(checkpointer=saver)
        for _ in range(runs + 1):  # the first is not counted
            began = time.perf_counter()
            assert app.invoke(begin(steps), config(steps), durability="sync")["number"] == steps
            took.append(time.perf_counter() - began)
        said = f"1 connection, not pooled; autocommit={'on' if connection.autocommit else 'off'}, {shown(connection)}"
    tell(took, [said])


async def main_async(url: str, steps: int, runs: int) -> None:
    took = []
    async with AsyncPostgresSaver.from_conn_string(url) as saver:
        await saver.setup()
        app = graph().compile(checkpointer=saver)
        for _ in range(runs + 1):
            began = time.perf_counter()
            assert (await app.ainvoke(begin(steps), config(steps), durability="sync"))["number"] == steps
            took.append(time.perf_counter() - began)
        autocommit = saver.conn.autocommit
    with psycopg.connect(url) as connection:
        said = f"1 connection, not pooled; autocommit={'on' if autocommit else 'off'}, {shown(connection)}"
    tell(took, [said])


def shown(connection: psycopg.Connection[Any]) -> str:
    rows = {name: connection.execute(f"SHOW {name}").fetchone() for name in SETTINGS}
    return ", ".join(f"{name}={next(iter(row.values())) if isinstance(row, dict) else row[0]}" for name, row in rows.items())


def tell(took: list[float], connections: list[str]) -> None:
    versions = f"{version('langgraph')}, checkpoint-postgres {version('langgraph-checkpoint-postgres')}"
    print(json.dumps({"version": versions, "seconds": took[1:], "connections": connections}))


if __name__ == "__main__":
    url, steps, runs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if "async" in sys.argv[4:]:
        asyncio.run(main_async(url, steps, runs))
    else:
        main(url, steps, runs)
