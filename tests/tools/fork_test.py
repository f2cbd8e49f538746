"""Processes that fork around models, run by api_test.cc against an installed package."""

import multiprocessing
import os
import signal
import threading
import unittest

import numpy as np
import tilesmith

NETWORK = "squeezenet1_1"
SHAPE = "input=1x3x64x64"
FORKS = 100
SECONDS = 30  # that a child has: one that hangs ends by a signal


def image(seed=1):
    return np.random.default_rng(seed).standard_normal((1, 3, 64, 64)).astype(np.float32)


def load(threads):
    return tilesmith.load(NETWORK, threads=threads, input_shapes=[SHAPE])


def scores(model, x):
    (array,) = model.run(x).values()
    return array


def in_child(body):
    """Whether body() is true in a child."""
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        ends = 1
        try:
            ends = 0 if body() else 2
        finally:
            os._exit(ends)
    return os.waitpid(child, 0)[1] == 0


served = None  # what workers of a pool have inherited


def serve(seed):
    return scores(served, image(seed))


def load_and_serve(seed):
    return scores(load(threads=1), image(seed))


class ForkTest(unittest.TestCase):
    def setUp(self):
        self.x = image()
        cores = len(os.sched_getaffinity(0))
        self.models = {threads: load(threads) for threads in (1, 2) if threads <= cores}
        self.expected = scores(self.models[1], self.x)

    def answers(self, model):
        return np.allclose(scores(model, self.x), self.expected, rtol=1e-4, atol=1e-6)

    def test_the_parents_model_answers_in_the_child(self):
        for threads, model in self.models.items():
            for i in range(FORKS):
                self.assertTrue(self.answers(model), (threads, i))
                self.assertTrue(in_child(lambda: self.answers(model)), (threads, i))

    def test_a_model_that_the_child_loads_runs_there(self):
        for threads in self.models:
            for i in range(FORKS):
                self.assertTrue(in_child(lambda: self.answers(load(threads))), (threads, i))

    def test_so_do_both_in_the_childs_child(self):
        for threads, model in self.models.items():
            def child():
                return self.answers(model) and in_child(lambda: self.answers(model) and self.answers(load(threads)))

            for i in range(FORKS):
                self.assertTrue(in_child(child), (threads, i))

    def test_a_fork_while_another_thread_runs(self):
        for threads, model in self.models.items():
            over, runs = threading.Event(), []

            def work():
                while not over.is_set():
                    runs.append(self.answers(model))

            worker = threading.Thread(target=work)
            worker.start()
            try:
                for i in range(FORKS):
                    self.assertTrue(in_child(lambda: self.answers(model)), (threads, i))
            finally:
                over.set()
                worker.join()
            self.assertTrue(runs and all(runs))

    def test_a_fork_while_another_thread_loads(self):
        over = threading.Event()

        def work():
            while not over.is_set():
                load(threads=1)

        worker = threading.Thread(target=work)
        worker.start()
        try:
            for i in range(FORKS):
                self.assertTrue(in_child(lambda: self.answers(load(threads=1))), i)
        finally:
            over.set()
            worker.join()

    def test_pools_of_four_serve_one_model(self):
        global served
        seeds = range(40)
        for threads, model in self.models.items():
            served = model
            expected = [serve(seed) for seed in seeds]
            for method, work in (("fork", serve), ("spawn", load_and_serve)):
                with multiprocessing.get_context(method).Pool(4) as pool:
                    for got, wanted in zip(pool.map_async(work, seeds).get(SECONDS * 4), expected):
                        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6, err_msg=f"{method}, {threads}")


if __name__ == "__main__":
    unittest.main()
