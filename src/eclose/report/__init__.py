"""The report of a run: one self-contained HTML page. It reads the run's folder and nothing else."""

from eclose.report.report import SECTIONS, report_text, write_report

__all__ = ["SECTIONS", "report_text", "write_report"]
