"""Weights of operations against what they are worth: the score after each is fixed."""

from __future__ import annotations

from eclose.report.markup import Markup, element, joined
from eclose.report.panels import Mark, Panel, palette, panels
from eclose.report.record import Record
from eclose.report.search_record import choices_of, diagnosis
from eclose.report.sections.architecture import labels_of


def strength(record: Record) -> Markup | None:
    """Return the section, or nothing for a run whose operations nobody has fixed."""
    found = diagnosis(record, "strength")
    choices = {} if found is None else found.get("choices", {})
    if found is None or not choices:
        return None
    known = choices_of(record)
    made, labels, skips, zeros = [], [], set(), set()
    for name, choice in choices.items():
        spoken = labels_of(choice, len(choice["weights"]))
        whole = labels_of(known.get(name, {}), len(known.get(name, {}).get("labels", ())))
        skips |= {whole[index] for index in known.get(name, {}).get("skip", ())}
        zeros |= {whole[index] for index in known.get(name, {}).get("zero", ())}
        labels += spoken
        marks = [
            Mark(label, [(float(weight), float(score))], f"{label}: weight {weight:.4g}, score {score:.4g}")
            for label, weight, score in zip(spoken, choice["weights"], choice["scores"], strict=True)
            if score is not None
        ]
        made.append(Panel(f"{name}: {_tau(choice.get('tau'))}", marks))
    said = (
        f"After epoch {found['epoch']}: the weight of each operation and the held score of the supernet when it alone "
        f"stands on its edge. Mean {_tau(found.get('tau'))}; where it is near 0, the largest weight is no reason to "
        "choose an operation."
    )
    return joined(
        [element("p", said), panels(made, palette(labels, tuple(skips), tuple(zeros)), x="weight", y="score")]
    )


def _tau(value: float | None) -> str:
    return "no tau" if value is None else f"tau {value:.2f}"
