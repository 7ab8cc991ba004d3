"""What `picokernel bench` concludes from figures: fits, sentences, tables, sizes. Nothing is measured."""

import math

import pytest
from picokernel.bench import verdicts
from picokernel.bench.breakdown import parts_of
from picokernel.bench.fits import crossover, fit, meeting, t_quantile
from picokernel.bench.intensity import OPERATIONS, function, per_byte
from picokernel.bench.memory import fitting
from picokernel.bench.tables import Section, Table, number, size_text, time_of

# The post's chain, ms by N.
POST_NUMPY = {1: 26.9, 2: 53.1, 4: 104.9, 8: 211.5, 16: 404.6}
POST_MLX = {1: 101.4, 2: 120.6, 4: 193.1, 8: 277.7, 16: 468.9}


def line(by_x):
    return fit(list(by_x.items()))


def test_the_posts_chain_cannot_be_told_from_never():
    base, other = line(POST_NUMPY), line(POST_MLX)
    assert (round(base.slope, 2), round(other.slope, 2)) == (25.22, 24.44)
    crossing = crossover(base, other)
    assert crossing.kind == "unclear"
    assert round(crossing.at, 1) == 99.0
    assert (round(crossing.difference, 2), round(crossing.error, 2)) == (0.78, 0.91)
    in_seconds = [line({n: ms / 1e3 for n, ms in by_n.items()}) for by_n in (POST_NUMPY, POST_MLX)]
    assert verdicts.chain("MLX", "NumPy", in_seconds[1], crossover(*in_seconds)) == (
        "MLX: 24.4 ms a step and 80.8 ms once; crosses NumPy at N = 99.0, not distinguishable from never "
        "(difference of the slopes 0.78 ± 0.91 ms)."
    )


def test_fit_gives_the_line_and_its_errors():
    exact = fit([(1, 5.0), (2, 7.0), (4, 11.0)])
    assert (exact.slope, exact.intercept) == pytest.approx((2, 3))
    assert exact.slope_error == pytest.approx(0, abs=1e-7)
    # By hand: y = 1/3 + x/2, residues -1/6, 1/3, -1/6, so that the variance is 1/6.
    noisy = fit([(0, 1 / 6), (1, 7 / 6), (2, 7 / 6)])
    assert (noisy.intercept, noisy.slope) == pytest.approx((1 / 3, 1 / 2))
    assert noisy.slope_error == pytest.approx(math.sqrt(1 / 12))
    assert noisy.intercept_error == pytest.approx(math.sqrt((1 / 3 + 1 / 2) / 6))
    assert math.isinf(fit([(1, 1.0), (2, 2.0)]).slope_error)


def around(intercept, slope, wobble=0.01):
    return line(
        {k: intercept + slope * k + wobble * (-1) ** i for i, k in enumerate((1, 2, 4, 8, 16))}
    )


def test_crossover_with_an_interval():
    crossing = crossover(around(0, 10), around(50, 5))
    assert crossing.kind == "at"
    assert crossing.at == pytest.approx(10, abs=0.1)
    assert crossing.low < crossing.at < crossing.high < 10.2
    wider = crossover(around(0, 10, 0.1), around(50, 5, 0.1))
    assert wider.high - wider.low == pytest.approx(10 * (crossing.high - crossing.low), rel=0.1)


def test_fiellers_interval_holds_the_point_as_often_as_it_says():
    import numpy as np

    rng, steps, inside = np.random.default_rng(0), np.array([1, 2, 4, 8, 16]), 0
    for _ in range(400):
        lines = [
            fit(
                list(
                    zip(
                        steps.tolist(),
                        (at + slope * steps + rng.normal(0, 2, 5)).tolist(),
                        strict=True,
                    )
                )
            )
            for at, slope in ((0, 10), (50, 5))
        ]
        crossing = crossover(*lines)
        inside += crossing.low <= 10 <= crossing.high
    assert 0.92 < inside / 400 < 0.98


@pytest.mark.parametrize(
    ("other", "kind", "text"),
    [
        (around(-5, 5), "first", "faster than base from the first step on"),
        (around(50, 20), "never", "never as fast as base"),
        (around(-50, 20), "until", "faster than base up to N = 5"),
        (around(50, 10), "unclear", "not distinguishable from never"),
        (line({1: 60.0, 2: 65.0}), "unclear", "too few lengths for an error"),
    ],
)
def test_crossovers_of_every_kind(other, kind, text):
    crossing = crossover(around(0, 10), other)
    assert crossing.kind == kind
    sentence = verdicts.chain("other", "base", other, crossing)
    assert text in sentence or "as far as can be told" in sentence


def test_students_t():
    assert t_quantile(6) == 2.447
    assert t_quantile(30) == pytest.approx(2.042, abs=0.003)
    assert math.isinf(t_quantile(0))


def test_meeting_of_two_curves():
    flat = {1: 10.0, 2: 10.0, 4: 10.0}
    assert meeting(flat, {1: 5.0, 2: 10.0, 4: 20.0}) == pytest.approx(2)
    assert meeting(flat, {1: 5.0, 2: 5.0, 4: 20.0}) == pytest.approx(2 * math.sqrt(2))
    assert meeting(flat, {1: 11.0, 2: 11.0, 4: 11.0}) == 0
    assert meeting(flat, {1: 20.0, 2: 20.0, 4: 9.0}) is None
    assert meeting(flat, {8: 20.0}) is None


# The post's one call at 1e8.
POST_PARTS = {
    "h2d": [11.6e-3, 11.5e-3, 11.2e-3],
    "op_lazy": [6.2e-6, 4.0e-6],
    "sync": [25.3e-3],
    "d2h": [43.9e-3],
}


def test_the_sentences_of_the_posts_call():
    assert verdicts.breakdown("mlx", POST_PARTS, 104e-3, 47.9e-3) == [
        "mlx: a call takes 104 ms, 2.17 times NumPy's 47.9 ms.",
        "75 % of it moves data (in 34.3 ms, out 43.9 ms); 24 % computes; building the graph takes 10.2 µs.",
        "On arrays that stay where mlx computes it would be 1.89 times as fast as NumPy; moving them alone "
        "takes longer than NumPy's whole call.",
        "A result costs 3.8 times an input: it is copied more than once, or into fresh pages.",
    ]


def test_other_sentences_of_a_call():
    slow = POST_PARTS | {"sync": [50e-3], "d2h": [5e-3]}
    sentences = verdicts.breakdown("mlx", slow, 90e-3, 40e-3)
    assert sentences[2] == "Even with nothing to move mlx would take 1.25 times NumPy's time."
    assert sentences[3].startswith("An input costs 2.3 times a result:")
    cheap = {"h2d": [1e-3], "sync": [10e-3], "d2h": [1e-3]}
    assert verdicts.breakdown("mlx", cheap, 12e-3, 40e-3)[2].endswith("4 times as fast as NumPy.")
    assert verdicts.breakdown("numpy", {"op": [24e-3, 23e-3]}, 48e-3) == [
        "numpy: a call takes 48 ms.",
        "2 operations, a pass each over memory: 98 % of the call.",
    ]
    assert verdicts.breakdown("cpu", {"launch": [9e-3]}, 10e-3, 48e-3) == [
        "cpu: a call takes 10 ms, 0.208 times NumPy's 48 ms.",
        "One fused pass: 90 % of the call.",
        "10 % belong to none of its events.",
    ]
    assert verdicts.breakdown("cpu", {"launch": [9e-3]}, 10e-3, after=0.8e-3)[-1] == (
        "10 % belong to none of its events, most of them after the last one: arrays are freed."
    )


def test_the_way_back():
    rows = [("a view", 0.0, 0.0, 5e-3, 0, 0.0), ("twice", 0.0, 20e-3, 20e-3, 2000, 30e-3)]
    assert verdicts.d2h(rows) == [
        "twice: 75 % of the way back are its 2,000 page faults.",
        "twice costs 8 times what a view does.",
    ]


def test_the_posts_table_in_sentences():
    ms = {
        1000: (0.002, 0.24),
        10**4: (0.003, 0.21),
        10**5: (0.020, 0.28),
        10**6: (0.29, 1.39),
        10**7: (4.01, 8.47),
    }
    medians = {n: {"numpy": a, "mlx": b} for n, (a, b) in ms.items()}
    assert verdicts.elementwise(medians) == [
        "numpy is fastest at every size: 2.11 to 120 times as fast as the next.",
        "numpy is 2.11 to 120 times as fast as mlx at every size.",
    ]
    medians[10**7]["mlx"] = 2.0
    assert verdicts.elementwise(medians)[-1] == "mlx is faster than numpy from n = 10,000,000 on."
    medians[10**4]["mlx"] = 0.001
    assert not any("mlx is faster" in s for s in verdicts.elementwise(medians))


def test_sentences_of_intensity():
    numpy = {0.125: 5e9, 1: 6e9, 8: 6e9}
    other = {0.125: 1e9, 1: 6e9, 8: 48e9}
    assert verdicts.intensity({"numpy": numpy, "mlx": other}) == [
        "numpy: up to 40 GB/s and 6 GFLOP/s; more work on a byte is free up to 0.15 operations.",
        "mlx: up to 8 GB/s and 48 GFLOP/s; more work on a byte is free up to 6 operations.",
        "mlx beats numpy from 1 operations a byte on.",
    ]
    always, never = ({x: f * y for x, y in numpy.items()} for f in (2, 0.5))
    assert "mlx beats numpy at every intensity measured." in verdicts.intensity(
        {"numpy": numpy, "mlx": always}
    )
    assert "numpy beats mlx at every intensity measured, up to 8." in verdicts.intensity(
        {"numpy": numpy, "mlx": never}
    )


@pytest.mark.parametrize("operations", OPERATIONS)
def test_kernels_have_the_operations_that_they_are_named_for(operations):
    class Counter(float):
        def __mul__(self, other):
            return counted(float(self) * other)

        def __add__(self, other):
            return counted(float(self) + other)

    count = 0

    def counted(value):
        nonlocal count
        count += 1
        return Counter(value)

    if operations:
        assert 0.1 < function(operations)(Counter(0.5)) < 10
        assert count == operations
    else:
        function(0)(Counter(0.5), 1.0, {}, {})
        assert count == 1
    assert per_byte(operations) == (operations / 8 if operations else 1 / 16)


def test_the_sweep_is_the_one_that_was_asked_for():
    assert [per_byte(k) for k in OPERATIONS] == [2.0**e for e in range(-4, 9)]


def test_nested_events_are_not_counted_twice():
    events = [
        {"category": "launch", "seconds": 2.0, "depth": 0},
        {"category": "alloc", "seconds": 1.0, "depth": 1},
        {"category": "launch", "seconds": 3.0, "depth": 0},
        {"category": "rest", "seconds": 4.0, "depth": 0},
    ]
    assert parts_of({"events": events}) == {"launch": [2.0, 3.0]}


def test_sizes_that_fit():
    gib = 2**30
    assert fitting(10**8, 100, 20 * gib) == 10**8
    assert fitting(10**8, 100, 10 * gib) == 5 * 10**7
    assert fitting(10**8, 100, gib) == 5 * 10**6
    assert fitting(3 * 10**8, 100, 30 * gib) == 2 * 10**8
    assert fitting(10**8, 100, 0) == 1


def test_tables_are_markdown_and_html():
    table = Table(["n", "ms"], [["1e3", "0.5"], ["<b>", "12"]], title="A & B")
    assert table.text() == (
        "**A & B**\n\n| n   |  ms |\n| --- | --: |\n| 1e3 | 0.5 |\n| <b> |  12 |\n"
    )
    assert '<td class="left">&lt;b&gt;</td><td>12</td>' in table.html()
    section = Section("T", "What.", [table], ["So."])
    assert section.text().startswith("## T\n\nWhat.\n\n**A & B**")
    assert section.text().endswith("- So.\n")


def test_numbers():
    assert [number(x) for x in (0, 0.00123456, 12.345, 999.6, 12345, 2e-5)] == [
        "0",
        "0.00123",
        "12.3",
        "1,000",
        "12,300",
        "0.00002",
    ]
    assert [time_of(s) for s in (1.5, 0.0254, 3.2e-6, 4e-9)] == [
        "1.5 s",
        "25.4 ms",
        "3.2 µs",
        "4 ns",
    ]
    assert [size_text(n) for n in (37, 1000, 10**8, 1234)] == ["37", "1e3", "1e8", "1,234"]
