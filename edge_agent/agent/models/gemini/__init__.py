"""Gemini through the google-genai SDK. Importing this package imports the SDK (about 0.6 s)."""

from edge_agent.agent.models.gemini.adapter import GeminiModel

__all__ = ["GeminiModel"]
