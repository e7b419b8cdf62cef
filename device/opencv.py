"""OpenCV, imported in one place with quiet logs and few threads.

Loading it takes about 0.3 s, so modules import this one inside the function that needs it:
`from device.opencv import cv2`. FFmpeg and libjpeg may still write to descriptor 2; a program that
draws on the terminal has to point that descriptor elsewhere before this module is imported.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENCV_LOG_LEVEL", "SILENT")
os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")  # AV_LOG_QUIET
# A picture file may claim any size in its header: 100 megapixels decode to 300 MB, and no camera has more.
os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", str(100_000_000))

import cv2

# One core is the capture thread's; a pool as wide as the machine would only fight with it over the other.
cv2.setNumThreads(max(1, (os.cpu_count() or 1) // 2))

__all__ = ["cv2"]
