"""The sentences that follow from the figures of an experiment: rules, nothing measured here."""

import math

from .fits import meeting
from .tables import number, time_of


def elementwise(medians):
    """Of n -> contender -> median seconds: who is fastest where, and by how much."""
    sentences = []
    names = {name for row in medians.values() for name in row}
    fastest = {n: min(row, key=row.get) for n, row in medians.items() if row}
    for name in sorted(names):
        sizes = [n for n in sorted(fastest) if fastest[n] == name]
        if sizes and len(names) > 1:
            ratios = [
                sorted(medians[n].values())[1] / medians[n][name]
                for n in sizes
                if len(medians[n]) > 1
            ]
            where = "every size" if len(sizes) == len(fastest) else _list(f"{n:,}" for n in sizes)
            if ratios:
                sentences.append(
                    f"{name} is fastest at {where}: {_range(ratios)} times as fast as the next."
                )
    for name in sorted(names - {"numpy"}) if "numpy" in names else ():
        both = [n for n in sorted(medians) if {name, "numpy"} <= medians[n].keys()]
        ratios = [medians[n]["numpy"] / medians[n][name] for n in both]
        if ratios and max(ratios) < 1:
            slower = [1 / r for r in ratios]
            sentences.append(f"numpy is {_range(slower)} times as fast as {name} at every size.")
        elif ratios and min(ratios) < 1:
            wins = [n for n, r in zip(both, ratios, strict=True) if r >= 1]
            if wins == both[len(both) - len(wins) :]:
                sentences.append(f"{name} is faster than numpy from n = {wins[0]:,} on.")
    return sentences


def breakdown(backend, parts, total, numpy_total=None, after=0.0):
    """Of one call: `parts` has category -> seconds of each event, `total` is the call's seconds, of
    which `after` are behind the last event; `numpy_total` is that of the same call on NumPy."""
    sums = {category: sum(times) for category, times in parts.items() if times}
    head = f"{backend}: a call takes {time_of(total)}"
    if numpy_total is not None:
        head += f", {number(total / numpy_total)} times NumPy's {time_of(numpy_total)}"
    sentences = [head + "."]
    moved = sums.get("h2d", 0) + sums.get("d2h", 0)
    if moved and "sync" in sums:
        sentences.append(_shares(sums, moved, total))
        if numpy_total is not None:
            sentences.append(_without_copies(backend, sums["sync"], moved, numpy_total))
        if parts.get("h2d") and parts.get("d2h"):
            sentences.append(_result_against_input(parts))
    elif "op" in sums:
        count = len(parts["op"])
        passes = "1 operation, one pass" if count == 1 else f"{count} operations, a pass each"
        sentences.append(f"{passes} over memory: {_percent(sums['op'], total)} of the call.")
    elif "launch" in sums:
        sentences.append(f"One fused pass: {_percent(sums['launch'], total)} of the call.")
    rest = total - sum(sums.values())
    if rest > 0.05 * total:
        freed = ", most of them after the last one: arrays are freed" if after > rest / 2 else ""
        sentences.append(f"{_percent(rest, total)} belong to none of its events{freed}.")
    return sentences


def _shares(sums, moved, total):
    lazy = sums.get("op_lazy", 0)
    text = (
        f"{_percent(moved, total)} of it moves data (in {time_of(sums.get('h2d', 0))}, "
        f"out {time_of(sums.get('d2h', 0))}); {_percent(sums['sync'], total)} computes"
    )
    return text + (f"; building the graph takes {time_of(lazy)}." if lazy else ".")


def _without_copies(backend, sync, moved, numpy_total):
    if sync >= numpy_total:
        return (
            f"Even with nothing to move {backend} would take "
            f"{number(sync / numpy_total)} times NumPy's time."
        )
    ratio = number(numpy_total / sync)
    text = f"On arrays that stay where {backend} computes it would be " + (
        f"{ratio} times as fast as NumPy" if numpy_total > 1.1 * sync else "as fast as NumPy"
    )
    if moved >= numpy_total:
        return text + "; moving them alone takes longer than NumPy's whole call."
    return text + "; moving them takes that away." if sync + moved > numpy_total else text + "."


def _result_against_input(parts):
    one_in, one_out = (sum(parts[c]) / len(parts[c]) for c in ("h2d", "d2h"))
    ratio = one_out / one_in
    if ratio > 1.5:
        return (
            f"A result costs {number(ratio, 2)} times an input: "
            "it is copied more than once, or into fresh pages."
        )
    if ratio < 1 / 1.5:
        return (
            f"An input costs {number(1 / ratio, 2)} times a result: "
            "inputs are copied into fresh pages, the result into pages that are there."
        )
    return "A result costs about what an input does."


def d2h(rows):
    """Of (how, wait, materialise, copy, page faults, faults' seconds)."""
    sentences = []
    for how, *seconds, faults, faulted in rows:
        total = sum(seconds)
        if total and faulted > 0.3 * total:
            sentences.append(
                f"{how}: {_percent(faulted, total)} of the way back are its {faults:,} page faults."
            )
    totals = {row[0]: sum(row[1:4]) for row in rows}
    if len(totals) > 1:
        cheap, dear = (pick(totals, key=totals.get) for pick in (min, max))
        sentences.append(
            f"{dear} costs {number(totals[dear] / totals[cheap], 2)} times what {cheap} does."
        )
    return sentences


def chain(name, base_name, line, crossing):
    """Of one row beside the base: its line in seconds by steps, and fits.Crossover."""
    slope = f"{time_of(line.slope)} a step" if line.slope > 0 else "nothing a step"
    head = f"{name}: {slope} and {time_of(max(line.intercept, 0))} once"
    difference = (
        f"difference of the slopes {number(crossing.difference * 1e3, 2)} "
        f"± {number(crossing.error * 1e3, 2)} ms"
    )
    if not math.isfinite(crossing.error):
        difference = "too few lengths for an error"
    low, high = number(crossing.low), number(crossing.high)
    verdict = {
        "first": f"faster than {base_name} from the first step on",
        "until": f"faster than {base_name} up to N = {number(crossing.at)} (95 %: {low} to {high})",
        "never": f"never as fast as {base_name}: its steps cost more ({difference})",
        "at": f"faster than {base_name} from N = {number(crossing.at)} on (95 %: {low} to {high})",
        "unclear": (
            f"crosses {base_name} at N = {crossing.at:.1f}, not distinguishable from never ({difference})"
            if 0 < crossing.at < math.inf
            else f"never as fast as {base_name}, as far as can be told ({difference})"
        ),
    }[crossing.kind]
    return f"{head}; {verdict}."


def intensity(curves):
    """Of name -> operations per byte -> FLOP/s: where each is bound by arithmetic, who passes whom."""
    sentences = []
    for name, curve in curves.items():
        peak, bandwidth = max(curve.values()), max(f / i for i, f in curve.items())
        sentences.append(
            f"{name}: up to {number(bandwidth / 1e9)} GB/s and {number(peak / 1e9)} GFLOP/s; "
            f"more work on a byte is free up to {number(peak / bandwidth, 2)} operations."
        )
    names = list(curves)
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            sentences += _passing(first, curves[first], second, curves[second])
    return sentences


def _passing(first, one, second, other):
    common = sorted(one.keys() & other.keys())
    if not common:
        return []
    wins = [other[x] > one[x] for x in common]
    last = number(common[-1])
    if all(wins):
        return [f"{second} beats {first} at every intensity measured."]
    if not any(wins):
        return [f"{first} beats {second} at every intensity measured, up to {last}."]
    if wins[-1]:
        at = meeting(one, other)
        return [f"{second} beats {first} from {number(at, 2)} operations a byte on."]
    at = meeting(other, one)
    return [f"{first} beats {second} from {number(at, 2)} operations a byte on."]


def _percent(part, whole):
    return f"{100 * part / whole:.0f} %"


def _range(ratios):
    low, high = number(min(ratios)), number(max(ratios))
    return low if low == high else f"{low} to {high}"


def _list(words):
    words = list(words)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
