"""How far a network's outputs are from those expected, by their values and by what they mean."""

import numpy


def load(path):
    with numpy.load(path) as file:
        return dict(file)


def overlaps(box, boxes):
    """How one box overlaps each of others: intersection / union."""
    low, high = numpy.maximum(box[:2], boxes[:, :2]), numpy.minimum(box[2:], boxes[:, 2:])
    shared = numpy.prod(numpy.clip(high - low, 0, None), axis=1)
    area = lambda b: numpy.prod(b[..., 2:] - b[..., :2], axis=-1)
    return shared / numpy.maximum(area(box) + area(boxes) - shared, 1e-12)


def kept(labels, scores, boxes, threshold, most_overlap):
    """(label, score, box) of those above the threshold that overlap none of their label with a higher score by more."""
    found = []
    for i in numpy.argsort(-scores, kind="stable"):
        if scores[i] <= threshold:
            break
        same = [box for label, _, box in found if label == labels[i]]
        if not same or overlaps(boxes[i], numpy.array(same)).max() <= most_overlap:
            found.append((labels[i], scores[i], boxes[i]))
    return found


def corners(centres, sizes):
    return numpy.concatenate([centres - sizes / 2, centres + sizes / 2], axis=1)


def faces(outputs):
    """fr_detect: scores of {background, face}; corners relative to the image."""
    scores, boxes = outputs["scores"], outputs["boxes"]
    if scores.ndim == 3:
        scores, boxes = scores[0], boxes[0]
    return kept(numpy.zeros(len(scores), int), scores[:, 1], boxes.astype(float), 0.5, 0.3)


def yolov8(outputs):
    (value,) = outputs.values()
    value = value.T.astype(float)  # of each place: centre, size, a score for each class
    scores = value[:, 4:].max(axis=1)
    likely = numpy.flatnonzero(scores > 0.25)
    boxes = corners(value[likely, :2], value[likely, 2:4])
    return kept(value[likely, 4:].argmax(axis=1), scores[likely], boxes, 0.25, 0.45)


def yolox(outputs):
    (value,) = outputs.values()
    value = value.astype(float)  # of each place of grids of three strides: offset, log of size, presence, class
    grids, strides = [], []
    for stride in (8, 16, 32):
        side = 416 // stride
        grids += [(x, y) for y in range(side) for x in range(side)]
        strides += [stride] * side * side
    strides = numpy.array(strides, float)[:, None]
    boxes = corners((value[:, :2] + grids) * strides, numpy.exp(numpy.minimum(value[:, 2:4], 50)) * strides)
    return kept(numpy.zeros(len(value), int), value[:, 4] * value[:, 5], boxes, 0.1, 0.45)


def text_boxes(outputs):
    """PP-OCR's detector: a map of how likely each pixel is text; the boxes around its connected parts."""
    import scipy.ndimage  # pylint: disable=import-outside-toplevel

    (value,) = outputs.values()
    parts, _ = scipy.ndimage.label(value[0] > 0.3)
    boxes = [numpy.array([x.start, y.start, x.stop, y.stop], float) for y, x in scipy.ndimage.find_objects(parts)]
    return [(0, 1.0, box) for box in boxes if (box[2] - box[0]) * (box[3] - box[1]) >= 20]


BOXES = {"faces": faces, "yolov8": yolov8, "yolox": yolox, "map": text_boxes}


def matches(expected, found):
    """Pairs of the same label that overlap by at least half, each box in one at most."""
    count, left = 0, list(found)
    for label, _, box in expected:
        candidates = [i for i, (other, _, _) in enumerate(left) if other == label]
        if not candidates:
            continue
        shared = overlaps(box, numpy.array([left[i][2] for i in candidates]))
        if shared.max() >= 0.5:
            count += 1
            del left[candidates[int(shared.argmax())]]
    return count


class Difference:
    """error: norm of the difference / norm of what is expected, over all samples, of several outputs the largest; worst:
    the largest norm of a single sample's, relative to the root mean square of those expected. agreement: how often the
    largest class is the same, None where there are none. boxes: how many are expected; boxes_match: pairs / mean number
    of boxes."""

    def __init__(self, known, expected, found):
        self.error = self.worst = 0.0
        same = places = 0
        for name, value in expected.items():
            axes = tuple(range(1, value.ndim))
            wanted, got = value.astype(float), found[name].astype(float)
            difference, norm = (numpy.square(x).sum(axis=axes) for x in (got - wanted, wanted))
            self.error = max(self.error, float(numpy.sqrt(difference.sum() / max(norm.sum(), 1e-300))))
            self.worst = max(self.worst, float(numpy.sqrt(difference.max() / max(norm.mean(), 1e-300))))
            if known.classes:
                equal = wanted.argmax(axis=-1) == got.argmax(axis=-1)
                same, places = same + int(equal.sum()), places + equal.size
        self.agreement = same / places if places else None
        self.boxes, self.boxes_match = 0, None
        if known.boxes:
            self.count_boxes(BOXES[known.boxes], expected, found)

    def count_boxes(self, read, expected, found):
        pairs = others = 0
        for i in range(len(next(iter(expected.values())))):
            wanted, got = (read({name: value[i] for name, value in outputs.items()}) for outputs in (expected, found))
            pairs += matches(wanted, got)
            self.boxes += len(wanted)
            others += len(got)
        self.boxes_match = 2 * pairs / max(self.boxes + others, 1)
