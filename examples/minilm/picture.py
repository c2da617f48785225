"""Draws a similarity matrix as SVG, and as PNG where rsvg-convert is installed."""

import html
import shutil
import subprocess

CELL = 44  # pixels
HEADER = 64
LABEL_CHARACTERS = 80  # a longer sentence is cut
CHARACTER_WIDTH = 7.2  # of the 13 pixel font, on average, with some room
NUMBER_WIDTH = 36
MARGIN = 16
PAPER, INK = (255, 255, 255), (16, 78, 96)  # the colours of similarity 0 (and less) and 1


def shortened(sentence):
    return sentence if len(sentence) <= LABEL_CHARACTERS else sentence[: LABEL_CHARACTERS - 1] + "…"


def colour(similarity):
    weight = min(max(float(similarity), 0.0), 1.0)
    return "#" + "".join(f"{round(paper + (ink - paper) * weight):02x}" for paper, ink in zip(PAPER, INK))


def text(x, y, content, anchor="start", size=13, fill="#222222"):
    return f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}" fill="{fill}">{html.escape(content)}</text>'


def similarity_svg(similarity, sentences, title):
    """similarity (sentences, sentences) -> the text of an SVG."""
    labels = [shortened(sentence) for sentence in sentences]
    count = len(sentences)
    # where the matrix begins
    left = MARGIN + round(max(map(len, labels)) * CHARACTER_WIDTH) + NUMBER_WIDTH
    width = max(left + count * CELL, round(len(title) * CHARACTER_WIDTH * 1.2)) + MARGIN
    height = HEADER + count * CELL + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="Helvetica, Arial, DejaVu Sans, sans-serif">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        text(MARGIN, 26, title, size=15),
    ]
    for row, label in enumerate(labels):
        middle = HEADER + row * CELL + CELL // 2 + 5
        parts.append(text(left - NUMBER_WIDTH, middle, label, anchor="end"))
        parts.append(text(left - 8, middle, str(row + 1), anchor="end"))
        parts.append(text(left + row * CELL + CELL // 2, HEADER - 8, str(row + 1), anchor="middle"))
        for column in range(count):
            value = similarity[row][column]
            x, y = left + column * CELL, HEADER + row * CELL
            parts.append(
                f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="{colour(value)}" stroke="#dddddd" stroke-width="1"/>'
            )
            ink = "#ffffff" if value > 0.55 else "#222222"
            parts.append(text(x + CELL // 2, y + CELL // 2 + 4, f"{round(float(value), 2) + 0.0:.2f}", anchor="middle", size=12, fill=ink))
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def write_picture(svg, path):
    """Writes path.svg and, where the converter is installed, path.png; returns the files written."""
    drawn = path.with_suffix(".svg")
    drawn.write_text(svg, encoding="utf-8")
    converter = shutil.which("rsvg-convert")
    if converter is None:
        return [drawn]
    painted = path.with_suffix(".png")
    subprocess.run([converter, "--output", painted, drawn], check=True)
    return [drawn, painted]
