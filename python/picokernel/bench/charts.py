"""The charts of the experiments, by plotly, which is imported when one is drawn."""

import statistics

from ..errors import Error

_COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5")
_CATEGORIES = {
    "h2d": "#4269d0",
    "op_lazy": "#a463f2",
    "op": "#3ca951",
    "launch": "#6cc5b0",
    "sync": "#efb118",
    "d2h": "#ff725c",
    "alloc": "#9c6b4e",
    "rest": "#bbbbbb",
}


def require_plotly():
    """Raises Error if there is none."""
    try:
        import plotly.graph_objects
        import plotly.io  # noqa: F401
    except ImportError:
        raise Error(
            "charts need plotly, which is not installed\n  pip install 'picokernel[bench]'"
        ) from None


def later(name, *data):
    """A chart that is drawn when it is called."""
    return lambda: globals()[name](*data)


def _figure(title_x, title_y, **axes):
    import plotly.graph_objects as go

    figure = go.Figure()
    figure.update_layout(
        template="plotly_white",
        height=440,
        margin={"l": 70, "r": 20, "t": 20, "b": 60},
        xaxis={"title": title_x, **axes.get("x", {})},
        yaxis={"title": title_y, **axes.get("y", {})},
    )
    return figure


_LOG = {"type": "log", "exponentformat": "power"}


def _colour(i):
    return _COLOURS[i % len(_COLOURS)]


def by_size(times):
    """Of n -> contender -> seconds of each round: lines, or bars where there is one size."""
    names = list(dict.fromkeys(name for row in times.values() for name in row))
    if len(times) == 1:
        ((n, row),) = times.items()
        figure = _figure("ms per call", "", x={"rangemode": "tozero"})
        middles = [statistics.median(row[name]) * 1e3 for name in names]
        spread = [_spread([row[name]]) for name in names]
        figure.add_bar(
            x=middles,
            y=names,
            orientation="h",
            name=f"n = {n:,}",
            error_x=_error([s[0][0] for s in spread], [s[1][0] for s in spread]),
        )
        return figure
    figure = _figure("n", "ms per call", x=_LOG, y=_LOG)
    for i, name in enumerate(names):
        sizes = [n for n in times if name in times[n]]
        rounds = [times[n][name] for n in sizes]
        middles = [statistics.median(r) * 1e3 for r in rounds]
        figure.add_scatter(
            x=sizes,
            y=middles,
            name=name,
            line={"color": _colour(i)},
            error_y=_error(*_spread(rounds)),
        )
    return figure


def _spread(rounds):
    """How far the highest and the lowest rounds are from the medians, in ms."""
    above = [(max(r) - statistics.median(r)) * 1e3 for r in rounds]
    below = [(statistics.median(r) - min(r)) * 1e3 for r in rounds]
    return above, below


def _error(above, below):
    return {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "thickness": 1}


def by_category(sums):
    """Of backend -> category -> seconds: a stacked bar a backend."""
    order = {"categoryorder": "array", "categoryarray": list(sums)}
    figure = _figure("ms", "", y={"autorange": "reversed", **order})
    for category, colour in _CATEGORIES.items():
        names = [name for name in sums if category in sums[name]]
        if names:
            figure.add_bar(
                x=[sums[name][category] * 1e3 for name in names],
                y=names,
                orientation="h",
                name=category,
                marker={"color": colour},
            )
    figure.update_layout(barmode="stack")
    return figure


def by_steps(medians, lines):
    """Of row -> N -> seconds, and row -> fits.Line: points, and the lines through them."""
    figure = _figure("steps N", "ms", x={"rangemode": "tozero"}, y={"rangemode": "tozero"})
    for i, (name, by_k) in enumerate(medians.items()):
        figure.add_scatter(
            x=list(by_k),
            y=[s * 1e3 for s in by_k.values()],
            name=name,
            mode="markers",
            marker={"color": _colour(i), "size": 9},
        )
        if name in lines:
            ends = [0, max(by_k)]
            figure.add_scatter(
                x=ends,
                y=[lines[name].at(x) * 1e3 for x in ends],
                mode="lines",
                line={"color": _colour(i), "width": 1},
                showlegend=False,
                hoverinfo="skip",
            )
    return figure


def by_intensity(curves, ceilings):
    """Of contender -> operations per byte -> FLOP/s; `ceilings`: name -> (bytes a second, FLOP/s), which
    predictions go by."""
    figure = _figure("operations per byte", "GFLOP/s", x=_LOG, y=_LOG)
    for i, (name, curve) in enumerate(curves.items()):
        figure.add_scatter(
            x=list(curve),
            y=[f / 1e9 for f in curve.values()],
            name=name,
            line={"color": _colour(i)},
            customdata=[f / x / 1e9 for x, f in curve.items()],
            hovertemplate="%{x} operations a byte: %{y:.3g} GFLOP/s, %{customdata:.3g} GB/s",
        )
    intensities = sorted({x for curve in curves.values() for x in curve})
    for name, (bandwidth, peak) in ceilings.items():
        figure.add_scatter(
            x=intensities,
            y=[min(bandwidth * x, peak) / 1e9 for x in intensities],
            name=f"{name}, predicted",
            mode="lines",
            line={"dash": "dot", "color": "#888"},
        )
    return figure
