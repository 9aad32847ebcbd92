"""A count in; so many steps of LangGraph on 100 branches side by side, each kept in SQLite, and their rate out."""

from __future__ import annotations

import operator
import sqlite3
import sys
import tempfile
import time
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

BRANCHES = 100


class State(TypedDict):
    rounds: int
    done: Annotated[int, operator.add]


def main(steps: int) -> float:
    rounds = steps // BRANCHES

    def ask(state: State):
        return [Send("step", {"branch": branch}) for branch in range(BRANCHES)] if state["rounds"] < rounds else END

    graph = StateGraph(State)
    graph.add_node("round", lambda state: {"rounds": state["rounds"]})
    graph.add_node("step", lambda state: {"done": 1})
    graph.add_node("join", lambda state: {"rounds": state["rounds"] + 1})
    graph.add_edge(START, "round")
    graph.add_conditional_edges("round", ask, ["step", END])
    graph.add_edge("step", "join")
    graph.add_edge("join", "round")
    with tempfile.TemporaryDirectory(dir=".", prefix=".bench-") as folder:
        database = sqlite3.connect(f"{folder}/peer.db", check_same_thread=False)
        saver = SqliteSaver(database)
        saver.setup()
        database.execute("PRAGMA synchronous = FULL")
        app = graph.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "1"}, "recursion_limit": 3 * rounds + 10}
        begin = time.perf_counter()
        result = app.invoke({"rounds": 0, "done": 0}, config, durability="sync")
        seconds = time.perf_counter() - begin
        assert result["done"] == rounds * BRANCHES
        database.close()
    return rounds * BRANCHES / seconds


if __name__ == "__main__":
    print(main(int(sys.argv[1])))
