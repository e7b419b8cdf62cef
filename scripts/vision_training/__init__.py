"""Parts of `scripts/train_vision.py`: cases, views of pictures, fitting, measuring."""
