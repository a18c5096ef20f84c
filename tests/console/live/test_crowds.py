"""Who is at a document (D17)."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from console.live.crowds import GONE_S, LISTED, WRITING_S, Crowd, People


def person(connection: str, anchor: int | None = 1) -> dict[str, Any]:
    return {"connection": connection, "who": {"name": connection}, "anchor": anchor, "head": anchor}


def connections(news: dict[str, Any] | None) -> dict[str, int | None]:
    assert news is not None
    return {each["connection"]: each["anchor"] for each in news["people"]}


def test_news_is_what_changed() -> None:
    crowd = Crowd(watchers=3)
    assert crowd.news(0.0) == {"people": [], "readers": 3}
    crowd.put(person("a"), 0.0)
    crowd.put(person("b"), 0.0)
    assert crowd.news(0.0) == {"people": [person("a"), person("b")], "readers": 1}
    crowd.put(person("b"), 1.0)  # a sign without news
    assert crowd.news(1.0) is None
    crowd.put(person("a", 7), 1.0)
    crowd.put(person("b", None), 1.0)
    assert connections(crowd.news(1.0)) == {"a": 7, "b": None}
    assert crowd.whole() == {"people": [person("a", 7)], "readers": 2}


def test_who_gives_no_sign_for_thirty_seconds_has_left() -> None:
    crowd = Crowd(watchers=2)
    crowd.put(person("a"), 0.0)
    crowd.put(person("b"), 20.0)
    crowd.news(20.0)
    crowd.expire(GONE_S)
    assert crowd.news(GONE_S) is None
    crowd.expire(GONE_S + 0.1)
    assert crowd.news(GONE_S + 0.1) == {"people": [person("a", None)], "readers": 1}


def test_above_fifty_those_who_only_read_are_a_count() -> None:
    crowd = Crowd(watchers=LISTED)
    for number in range(LISTED):
        crowd.put(person(f"p{number}"), 0.0)
    assert len(connections(crowd.news(0.0))) == LISTED
    crowd.write("p7", 0.0)
    crowd.watchers += 1
    news = crowd.news(0.0)
    assert set(connections(news).values()) == {None}
    assert len(connections(news)) == LISTED - 1
    assert crowd.whole() == {"people": [person("p7")], "readers": LISTED}
    assert crowd.news(WRITING_S + 1) == {"people": [person("p7", None)], "readers": LISTED + 1}
    crowd.watchers -= 1
    assert len(connections(crowd.news(WRITING_S + 1))) == LISTED


def test_another_process_that_falls_silent_is_forgotten() -> None:
    here, there = Crowd(watchers=1), Crowd(watchers=2)
    there.put(person("b"), 0.0)
    here.take("there", there.message(0.0), 0.0)
    assert here.news(0.0) == {"people": [person("b")], "readers": 2}
    here.expire(GONE_S + 1)
    assert here.news(GONE_S + 1) == {"people": [person("b", None)], "readers": 1}


def test_a_process_without_watchers_is_not_kept() -> None:
    here, there = Crowd(watchers=1), Crowd(watchers=1)
    here.take("there", there.message(0.0), 0.0)
    there.watchers = 0
    here.take("there", there.message(0.0), 0.0)
    assert here.elsewhere == {}


steps = st.lists(
    st.tuples(st.sampled_from(["put", "leave", "write", "join", "part", "expire", "news"]), st.integers(0, 59)),
    max_size=80,
)


@given(steps=steps, watchers=st.integers(0, 60))
def test_what_was_told_adds_up_in_every_process(steps: list[tuple[str, int]], watchers: int) -> None:
    """Whole = the sum of the news, on two processes that tell each other everything; and it is never too long."""
    here, there = Crowd(watchers=watchers), Crowd(watchers=3)
    known: dict[str, People] = {"here": {}, "there": {}}
    readers = {"here": 0, "there": 0}
    now = 0.0

    def hear() -> None:
        here.take("there", there.message(now), now)
        there.take("here", here.message(now), now)
        for name, crowd in (("here", here), ("there", there)):
            news = crowd.news(now)
            for each in news["people"] if news else ():
                if each["anchor"] is None:
                    del known[name][each["connection"]]
                else:
                    known[name][each["connection"]] = each
            readers[name] = news["readers"] if news else readers[name]

    for step, number in steps:
        now += 1.0
        crowd = there if number % 3 == 0 else here
        match step:
            case "put":
                crowd.put(person(f"p{number}", number), now)
            case "leave":
                crowd.put(person(f"p{number}", None), now)
            case "write":
                crowd.write(f"p{number}", now)
            case "join":
                crowd.watchers += number
            case "part":
                crowd.watchers = max(0, crowd.watchers - number)
            case "expire":
                now += number
                crowd.expire(now)
            case "news":
                hear()
    here.watchers, there.watchers = max(1, here.watchers), max(1, there.watchers)
    hear()
    assert known["here"] == known["there"] == here.shown == there.shown
    assert readers["here"] == readers["there"] == max(0, here.watchers + there.watchers - len(known["here"]))
