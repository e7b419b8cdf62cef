"""The real eyes: local garment vision, in the offline model's words."""
