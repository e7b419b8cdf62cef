"""The product catalog: a retailer's feed becomes notes, notes and photos become one searchable file.

`feeds` turns a feed into product notes, `notes` reads and writes them, `photos` verifies what they
refer to, `build` publishes `catalog.sqlite`, `schema` says what is in it, `words` holds the
vocabulary that makes search forgiving. The queries themselves live in the tools of `assets/tools`.
"""
