"""`SubTrackingAnalyzer` and `TrackingComparison`: gpu-tracker 5's analysis of code blocks, from its own files or those that `SubTracker` writes.

A recording needs neither: `load(FILE).regions` and `compare()`.
"""

from __future__ import annotations

import json
import os

from ..analysis.sub_tracking import (
    STATISTICS,
    CodeBlockComparison,
    CodeBlockResults,
    SubTrackingResults as SubTrackingValues,
    analyze,
    compare as compare_results,
    from_plain,
    pair_calls,
    to_plain,
)
from ..core.config import check_path
from ..core.errors import WRONG_DATA, RecordingError, UsageError
from ..exports.draft import drafted
from ..recording.sub_tracking import append_events, begin_block_file, read_events, read_tracking_table
from ..recording.tracking_file import check_tracking_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, TypeAlias

    from ..analysis.sub_tracking import BySession, Statistics

    Source: TypeAlias = str | os.PathLike[str]


class SubTrackingResults:
    """What `SubTrackingAnalyzer` finds: `print` it, or take `to_json()`. Statistics are dictionaries: min, max, mean, std."""

    def __init__(self, results: SubTrackingValues) -> None:
        self.results = results

    @property
    def overall(self) -> Mapping[str, Statistics]:
        """Of all samples, by column of the tracking file."""
        return self.results.overall

    @property
    def static_data(self) -> Mapping[str, float | str | None]:
        """What does not change: units, capacities, numbers of cores and GPUs."""
        return self.results.static_data

    @property
    def code_block_results(self) -> list[CodeBlockResults]:
        """One per code block, by name."""
        return list(self.results.code_block_results)

    def to_json(self) -> dict[str, Any]:
        """The same as a dictionary that JSON can hold."""
        return to_plain(self.results)

    def __str__(self) -> str:
        from ..reports.contract import render

        return str(render(self.results, "text")).rstrip("\n")

    __repr__ = __str__


class SubTrackingAnalyzer:
    """Code blocks from a tracking file and a sub-tracking file (.csv or .sqlite), of this tool or of gpu-tracker 5."""

    def __init__(self, tracking_file: Source | None, sub_tracking_file: Source) -> None:
        self._tracking_path = None if tracking_file is None else check_path("tracking_file", tracking_file)
        self._blocks_path = check_path("sub_tracking_file", sub_tracking_file)
        for path in (self._tracking_path, self._blocks_path):
            if path is not None:
                check_tracking_name(path)

    def read_static_data(self) -> dict[str, float | str | None]:
        """Units, capacities, numbers of cores and GPUs."""
        return read_tracking_table(self._need_tracking()).static_data

    def load_code_block_names(self) -> list[str]:
        """The names of all code blocks."""
        return sorted({event.code_block_name for event in read_events(self._blocks_path)})

    def load_timestamp_pairs(self, code_block_name: str) -> list[tuple[float, float]]:
        """When each call of a code block began and ended, in seconds since 1970."""
        return sorted(pair_calls(read_events(self._blocks_path))[0].get(code_block_name, []))

    def overall_timepoint_results(self) -> Mapping[str, Statistics]:
        """Statistics of all samples."""
        return analyze(read_tracking_table(self._need_tracking()), ()).overall

    def sub_tracking_results(self) -> SubTrackingResults:
        """Statistics of all samples and of each code block."""
        return SubTrackingResults(
            analyze(read_tracking_table(self._need_tracking()), read_events(self._blocks_path))
        )

    def combine_sub_tracking_files(self, files: Iterable[Source]) -> None:
        """Write the rows of several sub-tracking files, of several processes, to the one that was named."""
        combine_block_files([check_path("A sub-tracking file", file) for file in files], self._blocks_path)

    def _need_tracking(self) -> str:
        if self._tracking_path is None:
            raise UsageError("No tracking file was named.", "Give SubTrackingAnalyzer one.")
        return self._tracking_path


class TrackingComparison:
    """Compares results of `SubTrackingAnalyzer`, each in a JSON file: `json.dump(results.to_json(), file)`."""

    def __init__(self, file_path_map: Mapping[str, Source]) -> None:
        if not file_path_map:
            raise UsageError("Nothing to compare.", "Name at least one file of results.")
        self.results_map = {
            name: SubTrackingResults(load_results(check_path("A file of results", path)))
            for name, path in file_path_map.items()
        }

    def compare(self, statistic: str = "mean") -> ComparisonResults:
        """One statistic (min, max, mean or std) of every figure, for every file."""
        results = {name: report.results for name, report in self.results_map.items()}
        return ComparisonResults(compare_results(results, check_statistic(statistic)))


class ComparisonResults:
    """What `TrackingComparison` finds: `print` it, or take `to_json()`."""

    def __init__(self, comparison: CodeBlockComparison) -> None:
        self.comparison = comparison

    @property
    def overall_resource_usage(self) -> Mapping[str, BySession]:
        """Of all samples, by figure and session."""
        return self.comparison.overall_resource_usage

    @property
    def code_block_resource_usage(self) -> Mapping[str, Mapping[str, BySession]]:
        """By figure, code block and session."""
        return self.comparison.code_block_resource_usage

    @property
    def code_block_compute_time(self) -> Mapping[str, BySession]:
        """Seconds, by code block and session."""
        return self.comparison.code_block_compute_time

    def to_json(self) -> dict[str, Any]:
        """The same as a dictionary that JSON can hold."""
        from ..reports.sub_tracking import compare_to_plain

        return compare_to_plain(self.comparison)

    def __str__(self) -> str:
        from ..reports.contract import render

        return str(render(self.comparison, "text")).rstrip("\n")

    __repr__ = __str__


def check_statistic(statistic: str) -> str:
    """One that results have."""
    if statistic not in STATISTICS:
        raise UsageError(f"Invalid summary statistic '{statistic}'. Valid values are {' '.join(STATISTICS)}.")
    return statistic


def combine_block_files(paths: Sequence[str], target: str) -> None:
    """Write the rows of all files to a new one of the same format."""
    check_tracking_name(target)
    suffix = os.path.splitext(target)[1]
    for path in paths:
        if not path.endswith(suffix):
            raise UsageError(f"{path} is not in the format of {target}.", f"Its name must end with {suffix}.")
    if not paths:
        raise UsageError("There is no file to combine.")
    events = [event for path in paths for event in read_events(path)]
    with drafted(target, may_replace=False) as draft:
        begin_block_file(draft, target)
        append_events(draft, events, target)


def load_results(path: str) -> SubTrackingValues:
    """The results in a JSON file, of this tool or of gpu-tracker 5."""
    if path.endswith((".pkl", ".pickle")):
        raise UsageError(
            f"{path} is a pickle: loading it runs whatever code it holds.",
            "Analyze again with -f json: gpu-tracker sub-track analyze --tf FILE --stf FILE -f json -o FILE.json.",
        )
    try:
        with open(path, encoding="utf-8-sig") as file:
            return from_plain(json.load(file))
    except OSError as error:
        raise UsageError(f"Cannot read {path}: {error.strerror}.") from None
    except WRONG_DATA:
        raise RecordingError(
            f"{path} does not hold results of `gpu-tracker sub-track analyze -f json`."
        ) from None
