"""All sections of a run as one HTML file that asks for nothing outside of it."""

from html import escape

from .tables import code_html

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 1000px; padding: 0 1em; color: #222; }
table { border-collapse: collapse; margin: 1em 0; font-size: 13px; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: bold; padding: 4px 0; }
th, td { border-bottom: 1px solid #ddd; padding: 3px 10px; text-align: right; white-space: nowrap; }
th.left, td.left { text-align: left; }
section { overflow-x: auto; border-top: 2px solid #eee; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 1em; font-size: 13px; }
dd { margin: 0; }
"""


def page(facts, sections):
    """The file's text. `facts`: of the machine, name -> text. One plotly.js serves all charts."""
    import plotly.io
    from plotly.offline import get_plotlyjs

    parts = [
        "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8><title>picokernel bench</title>",
        f"<style>{_STYLE}</style>\n<script>{get_plotlyjs()}</script></head>\n<body>",
        "<h1>picokernel bench</h1>\n<dl>",
        *(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items()),
        "</dl>\n",
    ]
    for section in sections:
        parts.append(
            f"<section><h2>{escape(section.title)}</h2>\n<p>{code_html(section.about)}</p>\n"
        )
        if section.sentences:
            parts.append(
                "<ul>" + "".join(f"<li>{code_html(s)}</li>" for s in section.sentences) + "</ul>\n"
            )
        if section.chart is not None:
            config = {"displaylogo": False, "responsive": True}
            drawn = section.chart()
            parts.append(plotly.io.to_html(drawn, config, full_html=False, include_plotlyjs=False))
        parts += [table.html() for table in section.tables]
        parts.append("</section>\n")
    return "".join(parts) + "</body></html>\n"
