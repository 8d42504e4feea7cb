"""Values as Grafana writes them, for the units that the dashboards use. Pure."""

from __future__ import annotations

SECONDS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"), (0.001, "ms"))
THOUSANDS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def written(value: float, unit: str) -> str:
    """A value with its unit.

    Raises:
        ValueError: the unit is none that the dashboards use.
    """
    match unit:
        case "s":
            return _scaled(value, SECONDS, "s", " ")
        case "ms":
            return _scaled(value / 1000, SECONDS, "s", " ")
        case "bool_yes_no":
            return "yes" if value else "no"
        case "percentunit":
            return f"{value * 100:.3g} %"
        case "Bps":
            return f"{_scaled(value, THOUSANDS, '', ' ')}B/s"
        case "short":
            return _scaled(value, THOUSANDS, "", "")
    raise ValueError(f"unit {unit!r}: add it to sluice_lab.pictures.units")


def _scaled(value: float, scale: tuple[tuple[float, str], ...], plain: str, gap: str) -> str:
    for size, name in scale:
        if float(f"{abs(value) / size:.3g}") >= 1:  # as it is written: 999.9 is 1k
            return f"{value / size:.3g}{gap}{name}"
    return f"{value:.3g}{gap}{plain}"
