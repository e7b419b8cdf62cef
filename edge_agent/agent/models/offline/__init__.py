"""The offline model: local garment vision behind the same protocol as every other model."""

from edge_agent.agent.models.offline.model import OfflineModel

__all__ = ["OfflineModel"]
