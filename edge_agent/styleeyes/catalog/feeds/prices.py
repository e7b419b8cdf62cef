"""Amounts as feeds of different countries write them."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

_SYMBOLS = {"€": "EUR", "£": "GBP", "¥": "JPY", "￥": "JPY", "₹": "INR", "₩": "KRW", "zł": "PLN", "₺": "TRY"}
_DOLLARS = {
    "US$": "USD",
    "C$": "CAD",
    "CA$": "CAD",
    "A$": "AUD",
    "AU$": "AUD",
    "R$": "BRL",
    "HK$": "HKD",
    "$": "USD",
}
_CODE = re.compile(r"(?<![A-Za-z])[A-Z]{3}(?![A-Za-z])")
_AMOUNT = re.compile(r"\d(?:[\d.,'’\s\u00a0\u202f]*\d)?")
_LARGEST = Decimal(10) ** 9


def parse_price(text: str) -> tuple[Decimal, str | None]:
    """`52.00 USD`, `USD 52`, `$1,234.56`, `1.234,56 €`, `1 234,50 EUR`, `¥5,980` → amount and ISO 4217 code.

    A single separator followed by exactly three digits groups thousands (`1.234 €` is 1234), any
    other is the decimal one. Raises ValueError for what holds no amount, a negative one or several.
    """
    found = _AMOUNT.findall(text)
    if len(found) != 1 or re.search(r"[-−]\s*\W?\s*\d", text):
        raise ValueError(f"{text!r} is not a price")
    try:
        amount = Decimal(_plain_number(found[0]))
    except InvalidOperation:
        raise ValueError(f"{text!r} is not a price") from None
    if amount >= _LARGEST:
        raise ValueError(f"{text!r} is not a price")
    return amount, _currency(text)


def _plain_number(written: str) -> str:
    digits = re.sub(r"[\s\u00a0\u202f'’]", "", written)
    last = max(digits.rfind("."), digits.rfind(","))
    if last < 0:
        return digits
    mark = digits[last]
    groups = digits.count(mark)
    both = "." in digits and "," in digits
    thousands = not both and len(digits) - last - 1 == 3 and not digits.startswith("0")
    if (groups > 1 and not both) or thousands:
        return digits.replace(mark, "")
    return digits[:last].replace(".", "").replace(",", "") + "." + digits[last + 1 :]


def _currency(text: str) -> str | None:
    code = _CODE.search(text)
    if code:
        return code.group()
    for table in (_SYMBOLS, _DOLLARS):
        for symbol, currency in table.items():
            if symbol in text:
                return currency
    return None
