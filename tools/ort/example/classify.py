"""classify.py LIBRARY MODEL: runs a model in ONNX Runtime, with tilesmith computing what it can.

LIBRARY is libtilesmith_ort.so.
"""

import sys

import numpy as np
import onnxruntime


def main(library, model):
    onnxruntime.register_execution_provider_library("tilesmith", library)
    devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == "TilesmithExecutionProvider"]
    options = onnxruntime.SessionOptions()
    # Idle threads of ONNX Runtime would spin on the cores that tilesmith computes on.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_provider_for_devices(devices, {"threads": "0"})  # or a plan: {"plan": "model.plan.jsonl"}
    session = onnxruntime.InferenceSession(model, options)
    (image,) = session.get_inputs()
    scores = session.run(None, {image.name: np.full(image.shape, 0.5, np.float32)})[0].ravel()
    print(f"the largest of {scores.size} is number {scores.argmax()}, {scores.max():g}")


if __name__ == "__main__":
    main(*sys.argv[1:])
