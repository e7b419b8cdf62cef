"""The app's own looks: ink, paper, and high contrast."""

from __future__ import annotations

from textual.theme import Theme

INK = Theme(
    name="styleeyes-ink",
    primary="#e3a77b",
    secondary="#79c2bd",
    accent="#c9a4e8",
    foreground="#dcdde4",
    background="#0f1117",
    surface="#151821",
    panel="#1f2330",
    success="#8ecb8c",
    warning="#e6c36a",
    error="#f0837f",
    dark=True,
    variables={
        "border": "#3a4054",
        "border-blurred": "#2b3040",
        "footer-background": "#151821",
        "footer-key-foreground": "#e3a77b",
        "footer-description-foreground": "#9a9fb2",
        "quiet": "#858ba1",
        "block-cursor-background": "#2e3448",
        "block-cursor-foreground": "#ffffff",
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": "#232838",
        "block-cursor-blurred-foreground": "#dcdde4",
        "input-selection-background": "#79c2bd 35%",
    },
)

PAPER = Theme(
    name="styleeyes-paper",
    primary="#9a4a1c",
    secondary="#0f6b67",
    accent="#6b3fa0",
    foreground="#23252d",
    background="#f6f2ea",
    surface="#fdfbf7",
    panel="#ebe4d8",
    success="#2c6e2f",
    warning="#7d5a00",
    error="#b3261e",
    dark=False,
    variables={
        "border": "#b9ad9a",
        "border-blurred": "#d6ccbb",
        "footer-background": "#ebe4d8",
        "footer-key-foreground": "#9a4a1c",
        "footer-description-foreground": "#4d4a44",
        "quiet": "#686459",
        "block-cursor-background": "#e0d3be",
        "block-cursor-foreground": "#000000",
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": "#ece3d4",
        "block-cursor-blurred-foreground": "#23252d",
        "input-selection-background": "#0f6b67 25%",
    },
)

CONTRAST = Theme(
    name="styleeyes-contrast",
    primary="#ffd400",
    secondary="#00e5ff",
    accent="#ff9cf5",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#141414",
    success="#5cff5c",
    warning="#ffd400",
    error="#ff8080",
    dark=True,
    text_alpha=1.0,
    variables={
        "border": "#ffffff",
        "border-blurred": "#a8a8a8",
        "footer-background": "#000000",
        "footer-key-foreground": "#ffd400",
        "footer-description-foreground": "#ffffff",
        "quiet": "#d0d0d0",
        "block-cursor-background": "#ffd400",
        "block-cursor-foreground": "#000000",
        "block-cursor-text-style": "bold",
        "block-cursor-blurred-background": "#4d4000",
        "block-cursor-blurred-foreground": "#ffffff",
        "input-selection-background": "#00e5ff 45%",
    },
)

THEMES = (INK, PAPER, CONTRAST)
