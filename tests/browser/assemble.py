"""Joins the skeleton, the style, the script and one JSON document into a page.

    python3 assemble.py DOCUMENT.json PAGE.html     a page with that document
    python3 assemble.py --template TEMPLATE.html    the template, its placeholder kept
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).parents[2] / "crates" / "documents" / "src" / "html"
SCRIPTS = ["report.js", "timeline.js", "selection.js", "tables.js", "charts.js",
           "memory.js"]
PLACEHOLDER = "__RESIDENT_AUDIT_DOCUMENT__"


def text(name):
    return (HERE / name).read_text(encoding="utf-8").strip()


def template():
    script = "\n\n".join(text(name) for name in SCRIPTS)
    page = text("report.html").replace("/*__STYLE__*/", text("report.css"))
    return page.replace("/*__SCRIPT__*/", script) + "\n"


def main(arguments):
    if arguments[0] == "--template":
        page, target = template(), arguments[1]
    else:
        document = pathlib.Path(arguments[0]).read_text(encoding="utf-8").strip()
        # A name may hold "</script>": no "<" may end the element that carries the document.
        page = template().replace(PLACEHOLDER, document.replace("<", "\\u003c"))
        target = arguments[1]
    pathlib.Path(target).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
