"""What tools/bench-accuracy measures: boxes and how they match, classes, errors. Run by scripts_test.cc."""

import pathlib
import sys
import unittest

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/peers/accuracy"))

import known_networks
import measures


def boxes(*corners):
    return [(0, 1.0, numpy.array(box, float)) for box in corners]


class Boxes(unittest.TestCase):
    def test_overlap_is_intersection_over_union(self):
        shared = measures.overlaps(numpy.array([0.0, 0, 2, 2]), numpy.array([[0.0, 0, 2, 2], [1, 0, 3, 2], [2, 2, 3, 3]]))
        numpy.testing.assert_allclose(shared, [1, 1 / 3, 0])

    def test_lower_scores_give_way_within_a_label(self):
        corners = numpy.array([[0.0, 0, 2, 2], [0, 0, 2, 2.2], [0, 0, 2, 2.1], [5, 5, 6, 6]])
        found = measures.kept(numpy.array([0, 0, 1, 0]), numpy.array([0.5, 0.9, 0.8, 0.1]), corners, 0.25, 0.5)
        self.assertEqual([(label, score) for label, score, _ in found], [(0, 0.9), (1, 0.8)])

    def test_each_box_matches_once(self):
        expected, found = boxes([0, 0, 2, 2], [0, 0, 2, 2]), boxes([0, 0, 2, 1.9], [7, 7, 9, 9])
        self.assertEqual(measures.matches(expected, found), 1)
        self.assertEqual(measures.matches(expected, []), 0)
        self.assertEqual(measures.matches(boxes([0, 0, 1, 1]), [(1, 1.0, numpy.array([0.0, 0, 1, 1]))]), 0)

    def test_yolox_places_lie_on_three_grids(self):
        value = numpy.zeros((3549, 6))
        value[52 * 52 + 27] = [0.5, 0.5, numpy.log(2), 0, 1, 1]  # stride 16, second row, column 1
        ((_, score, box),) = measures.yolox({"output": value})
        self.assertEqual(score, 1)
        numpy.testing.assert_allclose(box, [24 - 16, 24 - 8, 24 + 16, 24 + 8])

    def test_yolov8_takes_the_largest_class(self):
        value = numpy.zeros((84, 8400))
        value[:4, 9], value[4 + 7, 9], value[4 + 3, 9] = [10, 20, 4, 6], 0.9, 0.5
        ((label, score, box),) = measures.yolov8({"output0": value})
        self.assertEqual((label, score), (7, 0.9))
        numpy.testing.assert_allclose(box, [8, 17, 12, 23])


class Differences(unittest.TestCase):
    def test_errors_and_classes(self):
        known = known_networks.Known("any", 1, 1, 1, classes=True)
        expected = {"a": numpy.array([[3.0, 4.0], [0.0, 5.0]])}
        found = measures.Difference(known, expected, {"a": numpy.array([[3.0, 4.0], [1.0, 5.0]])})
        self.assertAlmostEqual(found.error, 1 / 50**0.5)
        self.assertAlmostEqual(found.worst, 1 / 5)
        self.assertEqual((found.agreement, found.boxes), (1.0, 0))
        other = measures.Difference(known, expected, {"a": numpy.array([[4.0, 3.0], [0.0, 5.0]])})
        self.assertEqual(other.agreement, 0.5)

    def test_boxes_that_are_gone_count(self):
        known = known_networks.Known("any", 1, 1, 1, boxes="faces")
        one = {"scores": numpy.array([[[0.0, 1.0]]]), "boxes": numpy.array([[[0.0, 0, 1, 1]]])}
        none = {"scores": numpy.array([[[1.0, 0.0]]]), "boxes": one["boxes"]}
        self.assertEqual(measures.Difference(known, one, one).boxes_match, 1)
        gone = measures.Difference(known, one, none)
        self.assertEqual((gone.boxes, gone.boxes_match), (1, 0))


if __name__ == "__main__":
    unittest.main()
