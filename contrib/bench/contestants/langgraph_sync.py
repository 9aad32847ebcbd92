"""A count in; so many steps of one LangGraph node, each kept in SQLite before the next, and their rate out."""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
from typing import TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    done: int


def main(steps: int) -> float:
    graph = StateGraph(State)
    graph.add_node("step", lambda state: {"done": state["done"] + 1})
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", lambda state: END if state["done"] >= steps else "step")
    with tempfile.TemporaryDirectory(dir=".", prefix=".bench-") as folder:
        database = sqlite3.connect(f"{folder}/peer.db", check_same_thread=False)
        saver = SqliteSaver(database)
        saver.setup()
        database.execute("PRAGMA synchronous = FULL")
        app = graph.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "1"}, "recursion_limit": steps + 10}
        begin = time.perf_counter()
        result = app.invoke({"done": 0}, config, durability="sync")
        seconds = time.perf_counter() - begin
        assert result["done"] == steps
        database.close()
    return steps / seconds


if __name__ == "__main__":
    print(main(int(sys.argv[1])))
