"""Any server with OpenAI's chat completions: Ollama, llama.cpp, LM Studio, vLLM."""

from edge_agent.agent.models.openai.adapter import OpenAIModel

__all__ = ["OpenAIModel"]
