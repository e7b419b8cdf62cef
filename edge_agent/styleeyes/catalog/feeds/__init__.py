"""A retailer's feed in, product notes out.

`formats` tells what a file is and opens it; `merchant_xml`, `merchant_tsv` and `shopify` each turn
one format into `items.FeedItem`s; `grouping` brings the sizes and colours of one style together
without holding the feed in memory; `styles` makes a note of them; `importer` writes the notes.
"""
