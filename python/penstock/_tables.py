"""Answers that are tables: lists of dicts that turn into those of other libraries."""

from __future__ import annotations

import html
from typing import Any, Iterable


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
        try:
            import pyarrow
        except ImportError as error:
            raise ImportError("arrow() needs pyarrow: pip install 'penstock[tables]'") from error
        names = self.columns()
        return pyarrow.table({name: [row.get(name) for row in self] for name in names})

    def pandas(self) -> Any:
        """A pandas.DataFrame. Needs pandas."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("pandas() needs pandas: pip install 'penstock[pandas]'") from error
        return pandas.DataFrame(list(self), columns=self.columns())

    def polars(self) -> Any:
        """A polars.DataFrame. Needs polars and pyarrow."""
        try:
            import polars
        except ImportError as error:
            raise ImportError("polars() needs polars: pip install 'penstock[polars]'") from error
        return polars.from_arrow(self.arrow())

    def _repr_html_(self) -> str:
        names = self.columns()
        cell = lambda tag, value: f"<{tag}>{html.escape('' if value is None else str(value))}</{tag}>"  # noqa: E731
        head = "".join(cell("th", name) for name in names)
        rows = "".join("<tr>" + "".join(cell("td", row.get(n)) for n in names) + "</tr>" for row in self)
        return f"<table><tr>{head}</tr>{rows}</table>"
