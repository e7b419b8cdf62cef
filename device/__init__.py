"""The camera side: frames, the 15-second freshness buffer, sources, capture and image quality.

Importing this package loads nothing heavy; OpenCV arrives with the modules that need it.
"""
