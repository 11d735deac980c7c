"""Sentences of both exchanges that the reader knows, as templates: a sentence of no template is not read.

A family is a kind of question. Its `conditions` say what pays Yes; `asked` are forms of the title, which names whom
or what a Polymarket description calls "the listed candidate". `VOIDS`, `SOURCES` and `NOTES` are shared: what is paid
in states beside the condition, who reports the result, and sentences that change nothing.
"""

from __future__ import annotations

import msgspec

from orchestration.equivalents.templates import Template, template

HOW = (
    "(how:above|below|over|under|at_least|at_most|at_or_above|at_or_below|greater_than|less_than|more_than|higher_than|"
    "lower_than|greater_than_or_equal_to|less_than_or_equal_to|equal_to_or_greater_than|equal_to_or_less_than|between)"
)
MARKET = "(this_market|the_market|it)"
THEN_YES = "then the market resolves to yes"


class Family(msgspec.Struct, frozen=True):
    """A kind of question: `kind` of its event, what must happen, and the forms of its title and of its condition."""

    kind: str
    happening: str
    asked: tuple[Template, ...]
    conditions: tuple[Template, ...]


def _all(*texts: str) -> tuple[Template, ...]:
    return tuple(template(each) for each in texts)


FAMILIES = (
    Family(
        "house nomination",
        "wins the nomination",
        _all("will {person} be the {party} nominee for {seat}"),
        _all(
            f"{MARKET} will resolve according to the candidate who wins the nomination for the {{party}} party to contest "
            "the {seat} congressional district seat in the u.s house of representatives in the {year} midterm elections",
            f"if {{person}} wins the nomination for the {{party}} party to contest the {{year}} {{seat}} house seat {THEN_YES}",
            f"if {{person}} wins the nomination for the {{party}} dfl party to contest the {{year}} {{seat}} house seat {THEN_YES}",
        ),
    ),
    Family(
        "senate nomination",
        "wins the nomination",
        (),
        _all(
            f"if {{person}} wins the nomination for the {{party}} [dfl] party to contest the {{year}} [senate|class_i|class_ii|class_iii] "
            f"[special_election] {{state}} senate seat {THEN_YES}",
        ),
    ),
    Family(
        "governor nomination",
        "wins the nomination",
        (),
        _all(
            f"if {{person}} wins the nomination for the {{party}} [dfl] party to contest the {{year}} {{state}} governorship {THEN_YES}",
        ),
    ),
    Family(
        "senate nomination",
        "wins the primary",
        _all(
            "will {person} be the {party} nominee for senate in {state}",
            "will {person} win the {year} {state} {party} primary",
        ),
        _all(
            f"{MARKET} will resolve according to the winner of the {{party}} primary for united states senator from {{state}}",
            f"{MARKET} will resolve according to the winner of the {{party}} primary for united states senator from {{state}} "
            "scheduled to take place on {date}",
        ),
    ),
    Family(
        "governor nomination",
        "wins the primary",
        _all(
            "will {person} win the {year} {state} governor {party} primary election",
            "will {person} be the {party} nominee for {state} governor",
            "will {person} be the {party} nominee for governor of {state}",
        ),
        _all(
            f"{MARKET} will resolve according to the winner of the {{party}} primary for governor of {{state}} scheduled to "
            "take place on {date}",
        ),
    ),
    Family(
        "house election",
        "wins the election",
        _all("will the {party} party win the {seat} house seat"),
        _all(
            f"{MARKET} will resolve according to the party of the candidate who wins the {{seat}} congressional district seat "
            "in the u.s house of representatives in the {year} midterm elections",
            f"if the candidate of the {{party}} party wins the {{year}} election for the {{seat}} house seat {THEN_YES}",
        ),
    ),
    Family(
        "house election",
        "takes the seat",
        (),
        _all(
            f"if the house member sworn in for {{seat}} for the term beginning in {{term}} is a member of [the] {{party}} [party] {THEN_YES}",
        ),
    ),
    Family(
        "senate election",
        "wins the election",
        _all("will the {party} win the {state} senate race in {year}"),
        _all(
            f"{MARKET} will resolve according to the winner of the {{year}} [midterm] {{state}} u.s senate [special] election "
            "inclusive of any run-offs",
            f"{MARKET} will resolve according to the winner of the {{year}} [midterm] {{state}} u.s senate [special] election "
            "[special_election] currently scheduled for november 3 inclusive of any run-offs",
            f"{MARKET} will resolve according to the winner of the {{year}} [midterm] {{state}} u.s senate [special] election "
            "currently scheduled for november 3",
        ),
    ),
    Family(
        "senate election",
        "takes the seat",
        (),
        _all(
            f"if a representative of the {{party}} [dfl] party is sworn in as a senator of {{state}} for the term beginning in {{term}} {THEN_YES}",
        ),
    ),
    Family(
        "governor election",
        "wins the election",
        _all("will the {party} win the {state} governor race in {year}"),
        _all(f"{MARKET} will resolve according to the winner of the {{year}} {{state}} gubernatorial election"),
    ),
    Family(
        "governor election",
        "takes the seat",
        (),
        _all(
            f"if a representative of the {{party}} [dfl] party is inaugurated as the governor of {{state}} pursuant to the {{year}} election {THEN_YES}",
        ),
    ),
    Family(
        "president election",
        "wins the election",
        _all(
            "will the {party} win the {year} us presidential election",
            "will {person} win the {year} us presidential election",
            "will {person} win the {year} u.s presidential election",
        ),
        _all(
            f"{MARKET} will resolve to the political party whose candidate is elected the next president of the united states in the {{year}} election",
            f"{MARKET} will resolve to the person who wins the {{year}} us presidential election",
        ),
    ),
    Family(
        "president election",
        "takes the seat",
        (),
        _all(
            f"if a representative of the {{party}} party is inaugurated as president for the term beginning january 20 {{term}} {THEN_YES}",
        ),
    ),
    Family(
        "election abroad",
        "wins the election",
        _all(
            "will {person} win the {year} {place} presidential election",
            "will {person} win the next {place} presidential election",
            "will {person} win the {year} {place} mayoral election",
        ),
        _all(
            f"{MARKET} will resolve according to the [listed] candidate (who|that) wins the {{year}} {{place}} presidential election",
            f"{MARKET} will resolve according to the [listed] candidate (who|that) wins the next {{place}} presidential election",
            f"{MARKET} will resolve according to the [listed] candidate (who|that) wins (the|this) election",
            f"{MARKET} will resolve to yes if {{person}} wins the {{year}} {{place}} (presidential|mayoral) election",
            f"if the winner of [the] [next] {{place}} presidential election in {{year}} is {{person}} {THEN_YES}",
            f"if the winner of [the] [next] {{place}} presidential election (expected|scheduled) to be held in {{year}} at the latest is {{person}} {THEN_YES}",
            f"if {{person}} (has_won|wins) the {{year}} {{place}} presidential election {THEN_YES}",
            f"if {{person}} (has_won|wins) [the] {{place}} mayoral election in {{year}} {THEN_YES}",
        ),
    ),
    Family(
        "title",
        "wins the title",
        _all("will [the] {team} win the {year} {title}"),
        _all(
            f"{MARKET} will resolve to yes if [the] {{team}} (win|wins) the {{year}} {{title}}",
            f"{MARKET} will resolve according to the [national] (team|player) that wins the {{year}} {{title}}",
            f"{MARKET} will resolve to the (team|player) that wins the {{year}} {{title}}",
            f"if {{team}} wins the {{year}} {{title}} {THEN_YES}",
        ),
    ),
    Family(
        "match",
        "wins the match",
        _all("{league} {team} vs {rival}", "{team} vs {rival}", "will {team} beat {rival}"),
        _all(
            "in the upcoming {league} (game|match) scheduled for {date} at {clock} et if [the] {team} (win|wins) the market will resolve to {one}",
            "if [the] {rival} (win|wins) [the|this] market will resolve to {two}",
            f"if [the] {{team}} (win|wins) the {{first}} (vs|at) {{second}} professional {{league}} (game|match) originally scheduled for {{date}} {THEN_YES}",
        ),
    ),
    Family(
        "price",
        "value at a moment",
        _all(f"will the price of {{asset}} be {HOW} {{amount}} on {{date}}"),
        _all(
            f"{MARKET} will resolve according to the final close price of the {{source}} 1 minute candle for {{pair}} {{clock}} "
            "in the et timezone noon on the date specified in the title",
            f"{MARKET} will resolve to yes if the {{source}} 1 minute candle for {{pair}} on the time and date specified in the "
            "title has a final close price (how:higher_than|lower_than) the price specified in the title",
            f"{MARKET} will resolve to yes if the {{source}} 1 minute candle for {{pair}} at {{moment}} has a final close price {HOW} {{amount}}",
            f"if the {{source}} 1 minute candle for {{pair}} at {{moment}} has a final close price {HOW} {{amount}} {THEN_YES}",
            f"if the {{source}} price of {{pair}} is {HOW} {{amount}} at {{moment}} {THEN_YES}",
            f"if the simple average of the sixty seconds of {{source}} before {{clock}} is {HOW} {{amount}} at {{moment}} {THEN_YES}",
            f"{MARKET} will resolve to yes if the simple average of the sixty seconds of {{source}} before {{clock}} is {HOW} {{amount}} at {{moment}}",
            f"{MARKET} will resolve to yes if the {{source}} price of {{pair}} is {HOW} {{amount}} at {{moment}}",
        ),
    ),
    Family(
        "price",
        "value within a window",
        _all("will {asset} (reach|hit|dip_to) {amount} by {date}"),
        _all(
            f"{MARKET} will [immediately] resolve to yes if any {{source}} 1 minute candle for {{pair}} between {{from}} and {{until}} has a final {{side}} price {HOW} {{amount}}",
            f"if any {{source}} 1 minute candle for {{pair}} between {{from}} and {{until}} has a final {{side}} price {HOW} {{amount}} {THEN_YES}",
        ),
    ),
    Family(
        "fed decision",
        "change of the upper bound",
        _all(
            "will the fed (decrease|increase) interest rates by {amount} bps after the {month} {year} meeting",
            "will there be no change in fed interest rates after the {month} {year} meeting",
        ),
        _all(
            f"if the federal reserve does a (cut|hike) of {{amount}} on {{date}} {THEN_YES}",
            f"{MARKET} will resolve to yes if the upper bound of the target federal funds rate is {{change}} by {{amount}} basis points at the meeting of {{date}}",
            f"if the upper bound of the target federal funds rate is {{change}} by {{amount}} basis points at the meeting of {{date}} {THEN_YES}",
        ),
    ),
    Family(
        "upper bound",
        "value after a meeting",
        _all(),
        _all(
            f"if the upper bound of the target federal funds rate is {HOW} {{amount}} following the meeting of {{date}} {THEN_YES}",
            f"{MARKET} will resolve to yes if the upper bound of the target federal funds rate is {HOW} {{amount}} following the meeting of {{date}}",
        ),
    ),
    Family(
        "temperature",
        "highest of the day",
        _all("will the highest temperature in {place} be {how} {amount} on {date}"),
        _all(
            f"if the highest temperature recorded in {{place}} for {{date}} as reported by {{source}} is {HOW} {{amount}} {THEN_YES}",
            f"{MARKET} will resolve to yes if the highest temperature recorded in {{place}} for {{date}} as reported by {{source}} is {HOW} {{amount}}",
        ),
    ),
    Family(
        "figure",
        "published value",
        _all(),
        _all(
            f"if {{figure}} for {{period}} as first published by {{source}} is {HOW} {{amount}} {THEN_YES}",
            f"{MARKET} will resolve to yes if {{figure}} for {{period}} as first published by {{source}} is {HOW} {{amount}}",
        ),
    ),
)

# State → payout. `{deadline}` makes the state "late" than an instant.
VOIDS = (
    (
        "party as nominated",
        _all(
            "a candidate shall be considered to represent a party in the event that he or she is the nominee of the party in question",
            "candidates who run as independents will not be encompassed by the democrat or republican options regardless of any affiliation they may have with the party",
        ),
    ),
    (
        "party as listed on the ballot",
        _all(
            "a candidate party will be determined by {any*}",
            "a candidate without a ballot-listed affiliation to either the democrat or republican parties will be considered a member of one of these parties based on {any*}",
        ),
    ),
    ("nobody", _all("if no nominee is announced by {deadline} this market will resolve to other")),
    (
        "not held",
        _all(
            "if no {any} primary takes place this market will resolve to (other|no)",
            "if no {any} primary takes place by {deadline} this market will resolve to (other|no)",
            "if no {any} primary takes place this market will resolve to (other|no)",
        ),
    ),
    (
        "late",
        _all(
            "if the results are not known definitively by {deadline} this market will resolve to other",
            "if the (result|results) of (the|this) election isn't known by {deadline} (this|the) market will resolve to other",
            "if the (result|results) of (the|this) election are not confirmed by {deadline} this market will resolve to other",
            "if the {any} is cancelled postponed after {deadline} or there is otherwise no winner declared within that timeframe this market will resolve to other",
        ),
    ),
    (
        "unfinished",
        _all(
            "if the (game|match) is not completed by {deadline} (this|the) market will resolve 50-50",
            "if the (game|match) is not completed by {deadline} (this|the) market will resolve to 50-50",
        ),
    ),
    (
        "cancelled half",
        _all(
            "if the (game|match) is (canceled|cancelled) entirely with no make-up game this market will resolve 50-50"
        ),
    ),
    ("cancelled fair", _all("if the (game|match) is (canceled|cancelled) (this|the) market resolves to a fair price")),
    ("tie no", _all("if the (game|match) ends in a (tie|draw) (this|the) market (resolves|will_resolve) to no")),
    ("tie half", _all("if the (game|match) ends in a (tie|draw) (this|the) market (resolves|will_resolve) 50-50")),
    ("no data no", _all("if no (data|value|price) is available (this|the) market (resolves|will_resolve) to no")),
    ("no data fair", _all("if no (data|value|price) is available (this|the) market resolves to a fair price")),
)

RECORD = _all(
    "(the|the_primary) resolution source for this market will be a consensus of official {any*}",
    "the resolution source for this market is a consensus of official {any*}",
    "the resolution source for this market will be the first [official] announcement of the results from the {any} party however an overwhelming consensus of credible reporting may suffice",
    "this market will resolve based on the (result|results) of (the|this) election as indicated by a consensus of credible reporting",
    "this market will resolve based on the (result|results) of (the|this) election as indicated by the consensus of credible reporting",
    "if there is ambiguity this market will resolve (based_solely_on|solely_based_on) {any*}",
    "the primary resolution source for this market will be a consensus of credible reporting however {any*}",
    "the resolution source for this market is the associated press fox news and nbc",
    "this market will resolve once all three sources call the race for the same (candidate|party)",
    "if all three sources haven't called the race in this state for the same candidate this market will resolve based on the official certification",
    "the (primary_resolution|resolution) source [for_this_market] will be official information from {any*}",
)
CALLED_LATE = _all(
    "if all three sources haven't called the race for the same (candidate|party) by the inauguration date january 20 {term} "
    "this market will resolve based on who is inaugurated",
)

NOTES = _all(
    "the {party} primary will take place on {date}",
    "the midterm elections will take place on {date}",
    "{any} elections are scheduled to be held in {any} on {date}",
    "a presidential election is scheduled to take place in {any} on {date}",
    "the {any} mayoral election will be held on {date} to elect the mayor of {any}",
    "if no candidate receives a majority of the vote a runoff election will be held on {date}",
    "the {year} us presidential election is scheduled to take place on {date}",
    "the {year} united states presidential election will be held on {date}",
    "this market includes any potential second round",
    "otherwise (this_market|it) will resolve to no",
    "otherwise this market resolves to no",
    "any replacement of the nominee before election day will not change the resolution of the market",
    "resolution will be based on the overall winner of the primary including any potential second round [or|and] [run-off]",
    "candidates other than the democratic or republican nominee e.g greens libertarian independent may be added at a later date",
    "for presidential elections the relevant question is whether the person wins the election regardless of their partisan affiliation",
    "for legislative elections the relevant question is whether the party or alliance wins more seats {any*}",
    "if at any point it becomes impossible for {any*} (this|the_corresponding) market will resolve [immediately] to no",
    "if the (game|match) is postponed this market will remain open until the game has been completed",
    "kalshi is not affiliated associated authorized endorsed by or in any way officially connected with the governing league",
    "all trademarks logos and brand names are the property of their respective owners",
)
# A series of values, named again: it must be that of the condition.
SERIES = _all("the resolution source for this market is {source} specifically {any*}")
