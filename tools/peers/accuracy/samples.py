"""Samples of a network's input: pieces of photographs, at random places and sizes, some mirrored."""

import glob

import numpy
import onnxruntime
from PIL import Image

import known_networks
import measures

NATURAL = ("astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg", "motorcycle_left.png", "retina.jpg",
           "hubble_deep_field.jpg", "ihc.png", "coins.png", "camera.png", "grass.png", "gravel.png", "brick.png")
TEXT = ("page.png", "text.png")


def photographs(environment, kind):
    packages = glob.glob(str(environment / "lib" / "python3*" / "site-packages"))[0]
    data = [f"{packages}/skimage/data/{name}" for name in (TEXT if kind == "text" else NATURAL)]
    faces = sorted(glob.glob(str(environment / "faces" / "sample*.jpg")))
    paths = {"text": data, "faces": faces, "all": data + glob.glob(f"{packages}/sklearn/datasets/images/*.jpg") + faces}
    return [Image.open(path).convert("RGB") for path in paths[kind]]


def as_input(image, known):
    values = numpy.asarray(image.convert("L" if known.channels == 1 else "RGB"), numpy.float32)
    values = values.reshape(known.height, known.width, known.channels)
    return ((values - numpy.float32(known.mean)) * numpy.float32(known.scale)).transpose(2, 0, 1)


def faces_in(image, session):
    """Boxes (left, top, right, bottom) in pixels, by fr_detect, of the whole and of overlapping parts of it."""
    detector, found = known_networks.BY_NAME["fr_detect"], []
    for parts in (1, 2, 3):
        width, height = 2 * image.width // (parts + 1), 2 * image.height // (parts + 1)
        for i in range(parts):
            for j in range(parts):
                left, top = i * width // 2, j * height // 2
                part = image.crop((left, top, left + width, top + height)).resize((detector.width, detector.height))
                values = {detector.input_name: as_input(part, detector)[None]}
                outputs = dict(zip(("scores", "boxes"), session.run(["scores", "boxes"], values)))
                for _, score, box in measures.faces(outputs):
                    if score > 0.9:
                        found.append(box * [width, height, width, height] + [left, top, left, top])
    return found


def regions(kind, environment, models):
    """(image, box) pairs that samples are cut from."""
    images = photographs(environment, kind)
    if kind != "faces":
        return [(image, numpy.array([0, 0, image.width, image.height], float)) for image in images]
    session = onnxruntime.InferenceSession(str(models / "fr_detect.onnx"), providers=["CPUExecutionProvider"])
    found = [(image, box) for image in images for box in faces_in(image, session)]
    if not found:
        raise RuntimeError("fr_detect finds no face in the photographs")
    return found


def piece(image, box, known, random):
    """A random part of the box, of the network's proportions; of a face nearly all of it and what is around it."""
    width, height = box[2] - box[0], box[3] - box[1]
    if known.photos == "faces":
        size = max(width, height) * random.uniform(0.9, 1.5)
        crop = numpy.array([size, size])
        centre = [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2] + random.uniform(-0.08, 0.08, 2) * size
    else:
        most = min(width / known.width, height / known.height)
        crop = numpy.array([known.width, known.height]) * most * random.uniform(0.3, 1.0)
        centre = box[:2] + crop / 2 + random.uniform(0, 1, 2) * ([width, height] - crop)
    left, top = centre - crop / 2
    part = image.crop((int(left), int(top), int(left + crop[0]), int(top + crop[1])))
    part = part.resize((known.width, known.height), Image.Resampling.BILINEAR)
    if known.photos != "text" and random.random() < 0.5:
        part = part.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return as_input(part, known)


def write(known, places, path, count, seed):
    random = numpy.random.default_rng(seed)
    chosen = [places[random.integers(len(places))] for _ in range(count)]
    numpy.savez(path, **{known.input_name: numpy.stack([piece(*place, known, random) for place in chosen])})
