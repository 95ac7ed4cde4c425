"""SVG elements as escaped text, small enough that no library is worth it.

``element("text", "a < b", x=3, class_="label")`` escapes its text and its attributes; what is markup
already goes in as it is. Everything drawn is named for people who cannot see it: ``figure`` needs a title
and a description.

Colours and fonts are the page's business: an element carries classes only.
"""

from __future__ import annotations

from markupsafe import Markup, escape


def element(tag: str, *children: str, **attributes: object) -> Markup:
    """One element. ``class_`` is ``class``; ``stroke_width`` is ``stroke-width``; floats keep one decimal."""
    words = Markup("").join(
        Markup(' {}="{}"').format(name.rstrip("_").replace("_", "-"), _plain(value))
        for name, value in attributes.items()
        if value is not None
    )
    return Markup("<{}{}>{}</{}>").format(Markup(tag), words, Markup("").join(map(escape, children)), Markup(tag))


def figure(name: str, title: str, describe: str, wide: float, high: float, *children: str, class_: str = "") -> Markup:
    """An ``svg`` with a title and a description, drawn in its own units (CSS pixels).

    :param name: unique on the page; the title's and the description's ids are made of it.
    """
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", describe, id=f"{name}-desc"),
        *children,
        role="img",
        aria_labelledby=f"{name}-title",
        aria_describedby=f"{name}-desc",
        viewBox=f"0 0 {_plain(wide)} {_plain(high)}",
        width=wide,
        height=high,
        class_=class_ or None,
    )


def text(words: str, x: float, y: float, class_: str = "", anchor: str = "start") -> Markup:
    """A line of text; ``anchor`` is ``start``, ``middle`` or ``end``."""
    return element("text", words, x=x, y=y, class_=class_ or None, text_anchor=None if anchor == "start" else anchor)


def _plain(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
