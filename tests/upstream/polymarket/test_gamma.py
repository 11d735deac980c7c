import json

import httpx
import pytest

from tests.upstream import recordings
from upstream.polymarket.gamma.client import Gamma
from upstream.transport.errors import Incomplete, Malformed


class Catalogue:
    """Gamma as documented, over given objects; records what it was asked."""

    def __init__(self, objects, *, name="markets", page=None):
        self.objects = objects
        self.name = name
        self.page = page
        self.asked = []

    def __call__(self, request):
        params = request.url.params
        self.asked.append(request.url)
        if request.url.path.endswith("/keyset"):
            wanted = params.get_list("condition_ids")
            closed = params.get("closed", "false") == "true"
            objects = [
                each
                for each in self.objects
                if not wanted or (each["conditionId"] in wanted and each.get("closed", False) == closed)
            ]
            size = self.page or int(params["limit"])
            start = int(params.get("after_cursor") or 0)
            answer = {self.name: objects[start : start + size]}
            if start + size < len(objects):
                answer["next_cursor"] = str(start + size)
            return httpx.Response(200, json=answer)
        which = request.url.path.rsplit("/", 1)[1]
        for each in self.objects:
            if which in (each["id"], each.get("slug")):
                return httpx.Response(200, json=each)
        return httpx.Response(404, json={"error": "not found"})


@pytest.fixture
def gamma_of(client_of):
    return lambda handler, **options: Gamma(client_of(handler), "https://gamma.test/", **options)


@pytest.fixture(scope="module")
def objects(recorded):
    return [json.loads(text) for text in recordings.gamma_markets(recorded)]


def test_a_walk_brings_every_market_once(gamma_of, objects):
    catalogue = Catalogue(objects)

    markets = list(gamma_of(catalogue).markets(closed=False, order="volume24hr"))

    assert [market.id for market in markets] == [each["id"] for each in objects]
    assert len(catalogue.asked) == 12
    first = catalogue.asked[0]
    assert first.path == "/markets/keyset"
    assert dict(first.params) == {"limit": "100", "closed": "false", "order": "volume24hr", "include_tag": "true"}


def test_a_walk_goes_on_from_the_cursor_of_an_earlier_one(gamma_of, objects):
    gamma = gamma_of(Catalogue(objects[:250]))

    first = next(gamma.market_pages())
    rest = list(gamma.market_pages(first.next_cursor))

    assert [len(page.items) for page in (first, *rest)] == [100, 100, 50]
    assert rest[-1].next_cursor is None
    assert rest[0].items[0].id == objects[100]["id"]


def test_a_bad_object_is_refused_and_its_neighbours_are_kept(gamma_of, objects):
    bad = [objects[0] | {"closed": "perhaps"}, 7, None, [], "text", {"id": "1", "label": "a tag"}]
    kept = []
    gamma = gamma_of(
        Catalogue([objects[1], *bad, objects[2], objects[3] | {"conditionId": ""}]), on_refused=kept.append
    )

    [page] = gamma.market_pages()
    walked = list(gamma.markets())

    assert [market.id for market in page.items] == [objects[1]["id"], objects[2]["id"]]
    assert page.skipped == 1
    assert [json.loads(refusal.payload) for refusal in page.refused] == bad
    assert {refusal.source for refusal in page.refused} == {"gamma"}
    assert "closed" in page.refused[0].reason
    assert len(walked) == 2
    assert kept == page.refused


@pytest.mark.parametrize(
    "cursors",
    [["a", "a"], ["a", "b", "a"], ["", None]],
    ids=["the same at once", "a circle", "empty ends the walk"],
)
def test_a_cursor_that_comes_again_ends_the_walk_loudly(gamma_of, objects, cursors):
    asked = []

    def handler(request):
        number = len(asked)
        asked.append(request)
        return httpx.Response(
            200, json={"markets": objects[number : number + 1], "next_cursor": cursors[min(number, len(cursors) - 1)]}
        )

    gamma = gamma_of(handler)

    if cursors[0]:
        with pytest.raises(Incomplete, match="came again"):
            list(gamma.markets())
    else:
        assert len(list(gamma.markets())) == 1
    assert len(asked) <= len(cursors)


def test_a_page_that_comes_again_under_a_new_cursor_is_noticed(gamma_of, objects):
    asked = []

    def handler(request):
        asked.append(request)
        number = len(asked)
        page = objects[:3] if number != 2 else objects[3:6]
        return httpx.Response(200, json={"markets": page, "next_cursor": f"c{number}"})

    with pytest.raises(Incomplete, match="came before"):
        list(gamma_of(handler).markets())
    assert len(asked) == 3


def test_empty_pages_without_end_are_noticed(gamma_of):
    asked = []

    def handler(request):
        asked.append(request)
        return httpx.Response(200, json={"markets": [], "next_cursor": f"c{len(asked)}"})

    with pytest.raises(Incomplete, match="empty pages"):
        list(gamma_of(handler).markets())
    assert len(asked) == 3


@pytest.mark.parametrize("body", [[], {"data": []}, {"markets": {}}, {"markets": [], "next_cursor": 7}])
def test_a_page_of_another_shape_is_malformed(gamma_of, body):
    with pytest.raises(Malformed):
        list(gamma_of(lambda request: httpx.Response(200, json=body)).markets())


def test_one_market_is_found_by_number_slug_and_condition(gamma_of, objects):
    gamma = gamma_of(Catalogue(objects))
    closed = next(each for each in objects if each["closed"])
    is_open = next(each for each in objects if not each["closed"])

    for sent in (closed, is_open):
        assert gamma.market(sent["id"]).slug == sent["slug"]
        assert gamma.market(sent["slug"]).id == sent["id"]
        assert gamma.market(sent["conditionId"].upper().replace("X", "x", 1)).id == sent["id"]
    assert gamma.market("999999999") is None
    assert gamma.market("no/such?slug") is None
    assert gamma.market("0x" + "0" * 64) is None


def test_one_market_that_cannot_be_read_is_malformed(gamma_of, objects):
    with pytest.raises(Malformed, match="closed"):
        gamma_of(Catalogue([objects[0] | {"closed": "perhaps"}])).market(objects[0]["id"])


def test_markets_are_found_by_condition_whether_open_or_closed(gamma_of, objects):
    catalogue = Catalogue(objects)
    wanted = [each["conditionId"] for each in objects[::9]]

    found = gamma_of(catalogue).markets_by_condition([*wanted, wanted[0], "0x" + "0" * 64])

    assert {market.market_id for market in found} == set(wanted)
    assert max(len(url.params.get_list("condition_ids")) for url in catalogue.asked) == 50
    assert max(len(str(url)) for url in catalogue.asked) < 8000


def test_events_are_walked_with_their_markets(gamma_of, recorded):
    events = recordings.gamma_events(recorded)
    catalogue = Catalogue([*events, {"id": "1", "series": "none"}], name="events", page=2)
    kept = []

    walked = list(gamma_of(catalogue, on_refused=kept.append).events(closed=False))

    assert [event.event_id for event in walked] == [event["id"] for event in events]
    assert catalogue.asked[0].path == "/events/keyset"
    assert [json.loads(refusal.payload) for refusal in kept] == [{"id": "1", "series": "none"}]
