"""Answers that are tables: lists of dicts that turn into those of other libraries."""

from __future__ import annotations

import html
import importlib
from typing import Any, Iterable


def _library(name: str, extra: str) -> Any:
    """A library that is not always there."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"this needs {name}: pip install 'penstock[{extra}]'") from error


def _cell(tag: str, value: object) -> str:
    return f"<{tag}>{html.escape('' if value is None else str(value))}</{tag}>"


class Rows(list[dict[str, Any]]):
    """A list of dicts with the same keys. `arrow()`, `pandas()` and `polars()` make tables of it.

    >>> rows = Rows([{"class": "1:10", "packets": 3}, {"class": "1:20", "packets": 4}])
    >>> rows[1]["packets"]
    4
    >>> rows.columns()
    ['class', 'packets']
    """

    def __init__(self, rows: Iterable[dict[str, Any]] = ()) -> None:
        super().__init__(rows)

    def columns(self) -> list[str]:
        """The keys, in the order of their first rows."""
        names: dict[str, None] = {}
        for row in self:
            names.update(dict.fromkeys(row))
        return list(names)

    def arrow(self) -> Any:
        """A pyarrow.Table. Needs pyarrow."""
        pyarrow = _library("pyarrow", "tables")
        names = self.columns()
        return pyarrow.table({name: [row.get(name) for row in self] for name in names})

    def pandas(self) -> Any:
        """A pandas.DataFrame. Needs pandas."""
        pandas = _library("pandas", "pandas")
        return pandas.DataFrame(list(self), columns=self.columns())

    def polars(self) -> Any:
        """A polars.DataFrame. Needs polars and pyarrow."""
        polars = _library("polars", "polars")
        return polars.from_arrow(self.arrow())

    def _repr_html_(self) -> str:
        names = self.columns()
        head = "".join(_cell("th", name) for name in names)
        rows = "".join("<tr>" + "".join(_cell("td", row.get(n)) for n in names) + "</tr>" for row in self)
        return f"<table><tr>{head}</tr>{rows}</table>"
