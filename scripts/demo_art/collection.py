"""The demo shop's collection: invented styles, their words, prices and what they are cut from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from scripts.demo_art.fabric import Cloth, Rgb
from scripts.demo_art.garment import Cut

CREAM: Rgb = (240, 234, 220)


@dataclass(frozen=True, slots=True)
class Style:
    """One style of the demo catalog. `colours` maps a colour word to main and second colour."""

    id: str
    name: str
    category: str
    gender: str
    materials: tuple[str, ...]
    pattern: str
    price: float
    text: str
    cut: Cut
    colours: dict[str, tuple[Rgb, Rgb]]

    def in_colour(self, colour: str) -> Cut:
        main, second = self.colours[colour]
        return replace(self.cut, cloth=replace(self.cut.cloth, main=main, second=second))


def _cloth(weave: str) -> Cloth:
    return Cloth(weave, (0, 0, 0))


COLLECTION = (
    Style(
        "FJ-201",
        "Fern Quilted Jacket",
        "Jackets",
        "women",
        ("recycled polyester",),
        "quilted",
        129.0,
        "A light quilted jacket with a small collar, a full zip and slanted pockets.",
        Cut("top", _cloth("quilted"), "long", "collar", "zip", "slant"),
        {"green": ((38, 78, 54), CREAM), "black": ((40, 40, 44), CREAM)},
    ),
    Style(
        "FJ-214",
        "Harbor Puffer Jacket",
        "Jackets",
        "men",
        ("nylon", "down"),
        "solid",
        159.0,
        "A warm puffer jacket with horizontal baffles, a hood and a two-way zip.",
        Cut("top", _cloth("puffer"), "long", "hood", "zip", "slant"),
        {"yellow": ((226, 176, 44), CREAM), "navy": ((36, 50, 92), CREAM)},
    ),
    Style(
        "DN-118",
        "Ridge Denim Jacket",
        "Jackets",
        "men",
        ("cotton denim",),
        "solid",
        98.0,
        "A classic trucker jacket in washed denim with chest pockets and metal buttons.",
        Cut("top", _cloth("twill"), "long", "collar", "buttons", "patch", trim=(190, 140, 80)),
        {"blue": ((78, 112, 158), CREAM)},
    ),
    Style(
        "HD-305",
        "Cove Pullover Hoodie",
        "Hoodies & Sweatshirts",
        "men",
        ("cotton", "fleece"),
        "solid",
        64.0,
        "A soft fleece hoodie with a kangaroo pocket, drawstrings and ribbed cuffs.",
        Cut("top", _cloth("jersey"), "long", "hood", "none", "kangaroo", rib=True),
        {"burgundy": ((116, 30, 48), CREAM), "gray": ((142, 144, 150), CREAM)},
    ),
    Style(
        "KN-410",
        "Lark Cable Sweater",
        "Sweaters",
        "women",
        ("wool", "cotton"),
        "cable knit",
        89.0,
        "A cable-knit sweater with a crew neck and ribbed hem, warm without weight.",
        Cut("top", _cloth("cable"), "long", "crew", rib=True),
        {"cream": ((232, 220, 196), CREAM), "rust": ((172, 84, 46), CREAM)},
    ),
    Style(
        "TS-502",
        "Dune Striped Tee",
        "T-Shirts",
        "women",
        ("organic cotton",),
        "striped",
        32.0,
        "A short sleeve tee with fine horizontal stripes and a crew neck.",
        Cut("top", _cloth("striped"), "short", "crew"),
        {"navy": ((28, 40, 82), (246, 244, 238)), "red": ((190, 44, 48), (246, 244, 238))},
    ),
    Style(
        "TS-510",
        "Pier Pocket Tee",
        "T-Shirts",
        "men",
        ("organic cotton",),
        "solid",
        28.0,
        "An everyday short sleeve tee with one chest pocket.",
        Cut("top", _cloth("jersey"), "short", "crew", pockets="chest"),
        {"teal": ((30, 124, 128), CREAM), "orange": ((222, 116, 46), CREAM)},
    ),
    Style(
        "SH-604",
        "Hollow Check Shirt",
        "Shirts",
        "men",
        ("brushed cotton",),
        "checked",
        58.0,
        "A brushed flannel shirt in a bold check with a chest pocket and long sleeves.",
        Cut("top", _cloth("checked"), "long", "collar", "buttons", "chest"),
        {"red": ((172, 36, 40), (32, 30, 34)), "blue": ((74, 110, 170), (236, 236, 232))},
    ),
    Style(
        "PL-650",
        "Tide Polo",
        "Polos",
        "men",
        ("cotton piqué",),
        "solid",
        45.0,
        "A piqué polo with a soft collar and a short button placket.",
        Cut("polo", _cloth("jersey"), "short", "collar", "buttons"),
        {"mint": ((140, 206, 180), CREAM), "white": ((236, 235, 230), CREAM)},
    ),
    Style(
        "DR-701",
        "Poppy Sundress",
        "Dresses",
        "women",
        ("viscose",),
        "polka dot",
        79.0,
        "A sleeveless sundress with a fitted waist, a belt and a swinging dotted skirt.",
        Cut("dress", _cloth("dotted"), "none", "strap"),
        {"coral": ((226, 98, 84), (250, 246, 240)), "black": ((40, 38, 44), (250, 246, 240))},
    ),
    Style(
        "DR-716",
        "Meadow Floral Dress",
        "Dresses",
        "women",
        ("viscose",),
        "floral",
        84.0,
        "A sleeveless dress with scattered blossoms and a light, flared skirt.",
        Cut("dress", _cloth("floral"), "none", "v"),
        {"blue": ((62, 96, 164), (246, 226, 178)), "green": ((72, 122, 88), (246, 214, 214))},
    ),
    Style(
        "TR-803",
        "Mill Straight Jeans",
        "Pants",
        "men",
        ("cotton denim",),
        "solid",
        88.0,
        "Straight jeans in firm denim with contrast stitching.",
        Cut("trousers", _cloth("twill"), trim=(190, 140, 80)),
        {"indigo": ((46, 60, 104), CREAM), "black": ((48, 48, 54), CREAM)},
    ),
    Style(
        "TR-820",
        "Slope Joggers",
        "Pants",
        "women",
        ("cotton", "fleece"),
        "solid",
        54.0,
        "Soft joggers with a drawstring waist and ribbed ankles.",
        Cut("trousers", _cloth("jersey"), rib=True),
        {"charcoal": ((76, 78, 84), CREAM), "maroon": ((112, 40, 54), CREAM)},
    ),
    Style(
        "SR-850",
        "Field Chino Shorts",
        "Shorts",
        "men",
        ("cotton twill",),
        "solid",
        42.0,
        "Knee-length chino shorts with slanted pockets.",
        Cut("shorts", _cloth("jersey")),
        {"khaki": ((190, 168, 128), CREAM), "olive": ((98, 104, 62), CREAM)},
    ),
    Style(
        "SK-880",
        "Plum Pleated Skirt",
        "Skirts",
        "women",
        ("polyester",),
        "pleated",
        66.0,
        "A pleated midi skirt that moves with every step.",
        Cut("skirt", _cloth("pleated")),
        {"purple": ((112, 60, 106), CREAM), "teal": ((36, 112, 118), CREAM)},
    ),
)

WALK = (
    ("FJ-201", "green"),
    ("TS-502", "navy"),
    ("DR-701", "coral"),
    ("HD-305", "burgundy"),
    ("SH-604", "red"),
    ("DN-118", "blue"),
    ("SK-880", "purple"),
)
"""What hangs on the rail of the demo clip, in order."""
