"""Names of places, people and teams that do not exist."""

from __future__ import annotations

PLACES = [
    "Aldermoor",
    "Brightwater",
    "Cinderford",
    "Dunmere",
    "Eastmarch",
    "Fallowdale",
    "Greyhaven",
    "Hollowbrook",
    "Ironvale",
    "Juniper Bay",
]
PEOPLE = [
    "Ada Quill",
    "Boris Lant",
    "Cora Finch",
    "Dario Wells",
    "Edda Marsh",
    "Fenn Oakes",
    "Greta Holm",
    "Hugo Trask",
    "Iris Vale",
    "Jonas Reed",
]
TEAMS = [
    "Lantern City",
    "Harbour United",
    "Northwall",
    "Riverside",
    "Stonebridge",
    "Old Mill",
    "Westgate",
    "Highfield",
    "Saltmarsh",
    "Fairview",
]
