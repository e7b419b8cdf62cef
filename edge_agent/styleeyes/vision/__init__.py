"""The offline model's eyes: what garment is in a picture, and which catalog photo shows the same one.

Everything runs on the device. `garment.GarmentVision` is the face of this room; nothing heavy
(OpenCV, ONNX Runtime) is imported before `GarmentVision.load`.
"""
