"""What trained networks take and give: how an image becomes their input, and what their outputs mean."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    name: str
    channels: int
    height: int
    width: int
    scale: tuple = (1.0,)  # a pixel p of 0 to 255 becomes (p - mean) * scale, of each channel or of all
    mean: tuple = (0.0,)
    photos: str = "all"  # what it was trained on: "all", "faces" or "text"
    open_size: bool = False  # the model leaves its sizes open
    classes: bool = False  # the last axis of every output is classes, of which the largest counts
    boxes: str = ""  # how measures.py reads boxes out of its outputs
    input_name: str = "input"

    def __str__(self):
        return self.name

    @property
    def shape_option(self):
        return f"{self.input_name}=1x{self.channels}x{self.height}x{self.width}"


UNIT = (1 / 255,)
CENTRED = {"mean": (127.0,), "scale": (1 / 128,)}
IMAGENET = {"mean": (123.675, 116.28, 103.53), "scale": (1 / 58.395, 1 / 57.12, 1 / 57.375)}
OCR = {"mean": (127.5,), "scale": (1 / 127.5,), "open_size": True, "input_name": "x"}

BY_NAME = {known.name: known for known in (
    Known("fr_expression", 3, 224, 224, photos="faces", classes=True),
    Known("fr_liveness", 3, 128, 128, photos="faces", classes=True),
    Known("fr_pose", 3, 224, 224, photos="faces", classes=True, **IMAGENET),
    Known("fr_age", 3, 64, 64, photos="faces", **IMAGENET),
    Known("fr_gender", 3, 64, 64, photos="faces", **IMAGENET),
    Known("fr_eye", 1, 24, 24, UNIT, photos="faces", classes=True),
    Known("fr_landmark", 1, 64, 64, UNIT, photos="faces"),
    Known("fr_feature", 3, 112, 112, photos="faces", **CENTRED),
    Known("sface", 3, 112, 112, photos="faces", input_name="data"),
    Known("fr_detect", 3, 240, 320, boxes="faces", **CENTRED),
    Known("yolov8n", 3, 640, 640, UNIT, boxes="yolov8", input_name="images"),
    Known("common_det", 3, 416, 416, photos="text", boxes="yolox", input_name="images"),
    Known("ch_PP-OCRv4_det_infer", 3, 320, 320, photos="text", boxes="map", **OCR),
    Known("ch_PP-OCRv4_rec_infer", 3, 48, 320, photos="text", classes=True, **OCR),
)}
