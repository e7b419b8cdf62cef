"""The words of clothes: which mean the same, which include others, and the families of colours.

Data only; `words` turns it into the tables of a catalog. Each entry of a group is what people type,
in British and American English; the key is the preferred term that the index holds.
Preferred terms are single words, chosen so that stemming does not confuse them (`shortpants`, since
the stems of `shorts` and of `short sleeve` are one).
"""

from __future__ import annotations

GARMENTS: dict[str, str] = {
    "tshirt": "tee, tee shirt, t shirt, tshirt, v tee",
    "tanktop": "tank, tank top, vest top, singlet, sleeveless top, sleeveless tee, racerback",
    "camisole": "camisole, cami",
    "bra": "bra, sports bra, bra top, bralette, crop bra",
    "hoodie": "hoodie, hoody, hoodlie, hooded sweatshirt, hooded top, hooded jumper, hooded sweater",
    "sweatshirt": "sweatshirt, sweat shirt, sweat top, pullie",
    "sweater": "sweater, jumper, jersey, knitwear, knit top, knitted top",
    "pullover": "pullover, pull over, slipover",
    "cardigan": "cardigan, cardie",
    "fleece": "fleece, fleece top",
    "jacket": "jacket, shell, jackshirt, track top, track jacket",
    "coat": "coat, overcoat, topcoat, trench coat, trenchcoat, peacoat, duffle coat",
    "parka": "parka, anorak, cagoule, kagool",
    "windbreaker": "windbreaker, wind breaker, windcheater, wind jacket, windjammer",
    "raincoat": "raincoat, rain coat, rain jacket, mac, mackintosh",
    "puffer": "puffer, puffer jacket, down jacket, quilted jacket, padded jacket, quilted coat, padded coat",
    "bomber": "bomber, bomber jacket, flight jacket",
    "blazer": "blazer, sport coat, sports jacket, suit jacket",
    "gilet": "gilet, waistcoat, bodywarmer, body warmer, sleeveless jacket, puffer vest",
    "vest": "vest",
    "pants": "pants, pant, trouser, slack",
    "joggers": "jogger, jogging bottoms, jogging pant, tracksuit bottoms, track pant, sweatpant, sweat pant",
    "leggings": "legging, tight, yoga pant, jeggings",
    "jeans": "jean, denim pant, denim trouser",
    "chinos": "chino, khaki pant",
    "capri": "capri, cropped pant, cropped trouser, three quarter pant, pedal pusher, cropped legging",
    "shortpants": "shorts, short pants, bermuda, gym short, running short, yoga short, bike short, "
    "sport short, "
    "workout short, fitness short, compression short, drawstring short, active short, power short",
    "skirt": "skirt, skort",
    "dress": "dress, frock, gown, sundress",
    "tunic": "tunic",
    "shirt": "shirt, button down, button up, dress shirt",
    "blouse": "blouse",
    "polo": "polo, polo shirt",
    "jumpsuit": "jumpsuit, playsuit, romper, boilersuit, boiler suit",
    "tracksuit": "tracksuit, track suit, jogging suit",
    "dungarees": "dungaree, overall, bib overall",
    "suit": "suit",
    "nightwear": "pyjama, pajama, pj, nightwear, nightgown, nightdress",
    "underwear": "underwear, underpant, brief, boxer, knicker, pantie",
    "swimwear": "swimwear, swimsuit, bikini, swimming costume, trunk, bathing suit, boardshorts",
    "socks": "sock",
    "sneakers": "sneaker, trainer shoe, running shoe, tennis shoe, gym shoe, sport shoe",
    "shoes": "shoe, footwear",
    "boots": "boot",
    "sandals": "sandal, flip flop",
    "hat": "hat",
    "cap": "cap, baseball cap",
    "beanie": "beanie, woolly hat, bobble hat",
    "scarf": "scarf, scarves",
    "gloves": "glove, mitten",
    "belt": "belt",
    "bag": "bag, handbag, purse, tote, backpack, rucksack",
    "top": "top",
    "bottoms": "bottom, bottoms",
    "outerwear": "outerwear, outer layer",
}

INCLUDED_IN: dict[str, str] = {
    "tshirt": "top, shirt",
    "tanktop": "top",
    "camisole": "top, tanktop",
    "bra": "top",
    "hoodie": "top, sweatshirt",
    "sweatshirt": "top",
    "sweater": "top",
    "pullover": "top",
    "cardigan": "top, sweater",
    "fleece": "top",
    "tunic": "top",
    "shirt": "top",
    "blouse": "top, shirt",
    "polo": "top, shirt",
    "jacket": "outerwear",
    "coat": "outerwear",
    "parka": "outerwear, jacket, coat",
    "windbreaker": "outerwear, jacket",
    "raincoat": "outerwear, jacket, coat",
    "puffer": "outerwear, jacket, coat",
    "bomber": "outerwear, jacket",
    "blazer": "jacket",
    "gilet": "outerwear, vest",
    "pants": "bottoms",
    "joggers": "pants, bottoms",
    "leggings": "pants, bottoms",
    "jeans": "pants, bottoms",
    "chinos": "pants, bottoms",
    "capri": "pants, bottoms",
    "shortpants": "bottoms",
    "skirt": "bottoms",
    "sneakers": "shoes",
    "boots": "shoes",
    "sandals": "shoes",
    "cap": "hat",
    "beanie": "hat",
}
"""Narrower term → the broader ones that also find it."""

UMBRELLAS: frozenset[str] = frozenset({"top", "bottoms", "outerwear"})
"""Kinds so broad that whoever asks for a hoodie is not helped by all of them."""

NEAR: dict[str, str] = {
    "sweater": "pullover, sweatshirt, hoodie, fleece, cardigan",
    "pullover": "sweater, sweatshirt",
    "sweatshirt": "sweater, hoodie, fleece",
    "hoodie": "sweatshirt, fleece",
    "cardigan": "sweater, jacket",
    "fleece": "sweatshirt, hoodie, jacket",
    "jacket": "coat, fleece",
    "coat": "jacket",
    "parka": "coat, jacket",
    "puffer": "jacket, coat, parka",
    "bomber": "jacket",
    "windbreaker": "jacket, raincoat",
    "raincoat": "windbreaker, jacket, coat",
    "blazer": "jacket, suit",
    "gilet": "vest, jacket",
    "vest": "tanktop, gilet",
    "tanktop": "vest, camisole",
    "camisole": "tanktop, bra",
    "bra": "camisole, tanktop",
    "tshirt": "polo",
    "shirt": "blouse, tshirt",
    "blouse": "shirt, tunic",
    "polo": "tshirt, shirt",
    "tunic": "dress, blouse",
    "leggings": "capri, joggers, pants",
    "joggers": "pants, leggings",
    "jeans": "pants",
    "chinos": "pants",
    "capri": "leggings, pants",
    "pants": "capri",
    "cap": "hat",
    "beanie": "hat",
}
"""What may do when the thing itself is not found: an eye takes one for the other."""

COLOR_FAMILIES: dict[str, str] = {
    "black": "black, jet, ebony, onyx, anthracite, charcoal",
    "white": "white, ivory, cream, off white, ecru, snow, bone, pearl",
    "gray": "gray, grey, silver, slate, graphite, ash, charcoal, anthracite, heather, pewter, smoke, "
    "gunmetal",
    "red": "red, burgundy, maroon, crimson, scarlet, wine, cherry, ruby, brick, bordeaux, claret, oxblood",
    "orange": "orange, coral, rust, tangerine, peach, apricot, terracotta, copper",
    "yellow": "yellow, gold, golden, mustard, lemon, amber, ochre",
    "green": "green, olive, lime, mint, emerald, sage, forest, jade, moss, khaki, teal, bottle green",
    "blue": "blue, navy, royal, sky, indigo, cobalt, azure, turquoise, teal, aqua, cyan, denim, "
    "petrol, cerulean",
    "purple": "purple, violet, lavender, lilac, plum, mauve, aubergine, eggplant, magenta, amethyst, grape",
    "pink": "pink, rose, fuchsia, magenta, salmon, blush, coral, cerise, raspberry",
    "brown": "brown, tan, beige, camel, chocolate, coffee, mocha, sand, taupe, khaki, bronze, "
    "chestnut, caramel",
    "multicolor": "multicolor, multicolour, multicoloured, multicolored, multi, rainbow",
}

DETAILS: dict[str, str] = {
    "zip": "zip, zipper, zipped, zip up, zippered, zip front",
    "fullzip": "full zip, full zipper, full length zip, fullzip",
    "halfzip": "half zip, quarter zip, 1 4 zip, 1 2 zip",
    "shortsleeve": "short sleeve, short sleeved, shortsleeve, half sleeve",
    "longsleeve": "long sleeve, long sleeved, longsleeve, full sleeve",
    "sleeveless": "sleeveless, without sleeve, no sleeve",
    "vneck": "v neck, vneck, v necked",
    "crewneck": "crew neck, crewneck, round neck, crew necked",
    "funnelneck": "funnel neck, mock neck, high neck, turtleneck, turtle neck, roll neck, polo neck, "
    "stand collar",
    "hood": "hood, hooded",
    "striped": "striped, stripe, stripy, stripey",
    "pinstripe": "pinstripe, pinstriped, pin stripe, pin striped",
    "checked": "checked, check, checkered, chequered, plaid, tartan, gingham, buffalo check",
    "floral": "floral, flower, flowery, flowered",
    "dotted": "dotted, polka dot, spotted, spotty, dot",
    "camouflage": "camouflage, camo",
    "colorblocked": "color blocked, colour blocked, color block, colour block, colorblock, two tone, "
    "two toned, contrast",
    "graphicprint": "graphic print, graphic, printed, print, logo print",
    "plain": "plain, solid, solid color, solid colour, unpatterned",
    "quilted": "quilted, padded, puffy, puffed",
    "waterproof": "waterproof, water proof, water resistant, water repellent, rainproof, weatherproof",
    "windproof": "windproof, wind resistant, wind proof, wind blocking",
    "breathable": "breathable, mesh",
    "stretchy": "stretchy, stretch, elastic, elasticated, elasticized, spandex, lycra, elastane",
    "color": "color, colour",
    "heathered": "heathered, melange, marl, marled, flecked, speckled, specked",
    "knitted": "knit, knitted, knitting",
    "cotton": "cotton, organic cotton",
    "wool": "wool, woollen, woolen, woolly, merino",
    "fitted": "fitted, slim fit, slim, close fitting, tight fitting",
    "loose": "loose, relaxed, relaxed fit, baggy, oversized, roomy, loose fit",
    "warmup": "warm up, warmup",
    "allweather": "all weather, allweather",
}

DETAILS_INCLUDED_IN: dict[str, str] = {
    "pinstripe": "striped",
    "fullzip": "zip",
    "halfzip": "zip",
}
"""Narrower detail → the broader one that also finds it."""

GENDERS: dict[str, str] = {
    "men": "men, man, mens, male, gents, gentleman, gentlemen, guy",
    "women": "women, woman, womens, female, ladies, lady, womans",
    "boys": "boy, boys",
    "girls": "girl, girls",
    "kids": "kid, kids, child, children, childrens, junior, youth, toddler, baby, infant",
    "unisex": "unisex",
}

MODIFIERS: str = (
    "dark, light, bright, pale, deep, soft, neon, new, old, nice, simple, classic, casual, sporty, big, "
    "small, long, short"
)
"""Words that shade a wish and must not outweigh what is wished for."""

IGNORED: str = (
    "a, an, the, of, for, with, and, or, in, on, at, to, some, any, sort, kind, type, thing, things, "
    "something, "
    "like, that, this, these, those, is, are, it, its, my, me, i, we, you, your, want, need, "
    "looking, look, what, "
    "which, please, find, show, one, ones, wearing, wear, do, does, have, has, got, there, can, "
    "could, would, "
    "from, by, as, be, was, where, who, how, much, buy, get, see, seen, garment, clothing, clothes, "
    "item, product, "
    "style, piece, made, material, coloured, colored"
)
"""Words that say nothing about a product."""
