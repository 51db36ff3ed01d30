"""The rules of a call-back. The service has the same rules and the same wording."""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Mapping
from typing import Literal

from .errors import ContractError
from .protocol import (
    MAX_LISTED_VIOLATIONS,
    MAX_PARTITION_NAME_LENGTH,
    MAX_SAFE_INTEGER,
    MAX_TABLE_NAME_LENGTH,
    MAX_TASK_ID_LENGTH,
    Problem,
    Violation,
)

#: How the service handles fields of a descriptor that are not in the contract.
UnknownFields = Literal["refuse", "ignore", "keep"]

TABLE_FIELD = "computeTableName"
UNKNOWN_FIELD_ADVICE = "remove it, or start the service with --unknown-fields keep to hand it to the worker"

_SHOWN_CHARACTERS = 40
#: Longer names are omitted from pointers.
_POINTED_NAME = 256

_BAD_TEXT = re.compile("[\x00\ud800-\udfff]")
#: No dot, no control character, and at least one non-blank character.
_WITHIN_NAME = "[^.\x00-\x1f\x7f-\x9f\ud800-\udfff]*"
_BLANKS = "\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_NAME_PART = f"{_WITHIN_NAME}[^.\x00-\x20\x7f-\xa0\ud800-\udfff{_BLANKS}]{_WITHIN_NAME}"
_TABLE_NAME = re.compile(rf"{_NAME_PART}\.{_NAME_PART}")
_NUMBERS = re.compile(r"-([0-9]+)-([0-9]+)", re.ASCII)


def quoted(text: str) -> str:
    """A JSON string literal with at most the first forty characters of the text."""
    shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
    literal = json.dumps(shown, ensure_ascii=False)
    return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found.group()):04x}", literal)


def described(value: object) -> str:
    """A received value in a sentence: its type, so that "5" and 5 differ, and its first characters."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the string {quoted(value)}" if value else "an empty string"
    if isinstance(value, (list, tuple)):
        return "an array" if value else "an empty array"
    return "an object"


def _broken_count_rule(value: object) -> str | None:
    is_integer = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if not is_integer or isinstance(value, bool) or value < 0:  # type: ignore[operator]
        return "must be a non-negative integer"
    return f"must be at most {MAX_SAFE_INTEGER}" if value > MAX_SAFE_INTEGER else None  # type: ignore[operator]


def _broken_text_rule(value: object, longest: int) -> str | None:
    if not isinstance(value, str):
        return "must be a string"
    if value == "":
        return "must not be empty"
    return f"must have at most {longest} characters" if len(value) > longest else None


def _broken_task_rule(value: object) -> str | None:
    if value in (".", ".."):
        return 'must not be "." or "..": these cannot be used as a path segment of a URL'
    return _broken_text_rule(value, MAX_TASK_ID_LENGTH) or _broken_form_rule(value)


def _broken_name_rule(value: object) -> str | None:
    return _broken_text_rule(value, MAX_PARTITION_NAME_LENGTH) or _broken_form_rule(value)


def _broken_form_rule(value: object) -> str | None:
    return "must not contain NUL characters or lone surrogates" if _BAD_TEXT.search(str(value)) else None


def _broken_table_rule(value: object) -> str | None:
    rule = _broken_text_rule(value, MAX_TABLE_NAME_LENGTH)
    if rule is not None or _TABLE_NAME.fullmatch(str(value)):
        return rule
    return (
        "must have the form <schema>.<table>: two non-blank parts separated by exactly one dot, "
        "without control characters"
    )


def _did_you_mean(field: str, candidates: list[str]) -> str | None:
    """The candidate that a misspelt field name is most likely intended to be."""
    sought = _simplified(field)
    best, fewest = None, 3
    for candidate in candidates:
        target = _simplified(candidate)
        if abs(len(target) - len(sought)) <= 2:
            edits = _edit_distance(sought, target)
            if edits < fewest:
                best, fewest = candidate, edits
    return best


def _simplified(name: str) -> str:
    """The contract mixes two styles of names, so names that differ only in style count as equal."""
    return re.sub(r"[_\-\s]", "", name).lower()


def _edit_distance(source: str, target: str) -> int:
    previous = list(range(len(target) + 1))
    for row, letter in enumerate(source, 1):
        current = [row]
        for column, other in enumerate(target, 1):
            substitution = previous[column - 1] + (letter != other)
            current.append(min(substitution, previous[column] + 1, current[column - 1] + 1))
        previous = current
    return previous[-1]


class SeenIndexes:
    """
    The set of indexes seen so far, as ranges. Producers count upwards, so a level of ten million partitions is
    one range and not ten million entries.
    """

    def __init__(self) -> None:
        # Disjoint, ascending, never adjacent.
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def add(self, index: int) -> bool:
        """False if the index was already in the set."""
        firsts, lasts = self._firsts, self._lasts
        at = bisect.bisect_left(lasts, index)
        if at < len(firsts) and firsts[at] <= index:
            return False
        joins_previous = at > 0 and lasts[at - 1] + 1 == index
        joins_next = at < len(firsts) and firsts[at] - 1 == index
        if joins_previous and joins_next:
            lasts[at - 1] = lasts[at]
            del firsts[at], lasts[at]
        elif joins_previous:
            lasts[at - 1] = index
        elif joins_next:
            firsts[at] = index
        else:
            firsts.insert(at, index)
            lasts.insert(at, index)
        return True


class ContractCheck:
    """
    Checks the descriptors of a call-back one by one, in wire form. Reports all violations, so that the author
    of a producer can fix them in one round. Nothing is coerced.
    """

    def __init__(self, table_field: str = TABLE_FIELD, unknown_fields: UnknownFields = "refuse") -> None:
        self._rules = {
            "taskId": _broken_task_rule,
            table_field: _broken_table_rule,
            "partition_name": _broken_name_rule,
            "record_count": _broken_count_rule,
            "priorityLevel": _broken_count_rule,
        }
        self._table_field = table_field
        self._unknown_fields = unknown_fields
        self._count = 0
        self._task: tuple[str, int] | None = None
        #: The last valid one: nearly all tables of a call-back are the same text.
        self._table: object = object()
        self._previous_level = 0
        self._record_total = 0
        self._total_exceeded = False
        #: The position of each partition since the last call of `raise_if_broken`.
        self._positions: dict[tuple[int, int], int] = {}
        #: Indexes of the highest level. Levels ascend, so lower ones cannot occur again.
        self._seen = SeenIndexes()
        self._seen_level = 0
        self._violations: list[Violation] = []
        self._total = 0

    def raise_if_broken(self) -> None:
        """Raises what was found since the last call."""
        if self._count == 0:
            self._add("", "the array must have at least one partition descriptor")
        self._positions.clear()
        if self._total > 0:
            raise contract_error(self._violations, self._total)

    def take(self, descriptor: object) -> None:
        at = self._count
        self._count += 1
        if not isinstance(descriptor, Mapping):
            got = described(descriptor)
            self._add(f"/{at}", f"each element must be a partition descriptor, got {got}")
            return
        faults = self._field_faults(descriptor)
        self._relate(descriptor, at, faults)
        if not faults:
            return
        # In document order of the fields, with missing ones last.
        place = {field: position for position, field in enumerate(descriptor)}
        for field, detail in sorted(faults, key=lambda fault: place.get(fault[0], len(place))):
            step = "" if len(field) > _POINTED_NAME else f"/{field.replace('~', '~0').replace('/', '~1')}"
            self._add(f"/{at}{step}", detail)

    def _add(self, pointer: str, detail: str) -> None:
        self._total += 1
        if len(self._violations) < MAX_LISTED_VIOLATIONS:
            self._violations.append({"pointer": pointer, "detail": detail})

    def _field_faults(self, descriptor: Mapping[str, object]) -> list[tuple[str, str]]:
        faults = []
        for field, value in descriptor.items():
            rule = self._rules.get(field)
            if rule is None:
                if self._unknown_fields == "refuse":
                    faults.append((str(field), self._unknown(descriptor, str(field))))
                continue
            if field == self._table_field and value == self._table:
                continue
            broken = rule(value)
            if broken is not None:
                faults.append((field, f"{field} {broken}, got {described(value)}"))
            elif field == self._table_field:
                self._table = value
        for field in self._rules:
            if field not in descriptor:
                faults.append((field, f"{field} is missing"))
        return faults

    def _unknown(self, descriptor: Mapping[str, object], field: str) -> str:
        absent = [name for name in self._rules if name not in descriptor]
        is_alias = field == TABLE_FIELD and self._table_field in absent
        meant = self._table_field if is_alias else _did_you_mean(field, absent)
        advice = UNKNOWN_FIELD_ADVICE if meant is None else f"did you mean {meant}?"
        return f"{quoted(field)} is not a field of the contract; {advice}"

    def _relate(self, descriptor: Mapping[str, object], at: int, faults: list[tuple[str, str]]) -> None:
        """The rules that span several fields or elements. A rule that needs an invalid field is skipped."""
        invalid = {field for field, _ in faults} if faults else ()
        task = None if "taskId" in invalid else str(descriptor["taskId"])
        name = None if "partition_name" in invalid else str(descriptor["partition_name"])
        level = None if "priorityLevel" in invalid else int(descriptor["priorityLevel"])  # type: ignore[call-overload]
        if task is not None:
            self._share_task(task, at, faults)
            if name is not None:
                self._read_name(task, name, level, at, faults)
        if level is not None:
            self._ascend(level, faults)
        if "record_count" not in invalid:
            self._add_records(int(descriptor["record_count"]), faults)  # type: ignore[call-overload]

    def _share_task(self, task: str, at: int, faults: list[tuple[str, str]]) -> None:
        if self._task is None:
            self._task = (task, at)
        elif task != self._task[0]:
            expected, expected_at = self._task
            detail = (
                f"taskId must be the same in the whole array: /{expected_at} has {quoted(expected)}, "
                f"this element has {quoted(task)}; send one array per task"
            )
            faults.append(("taskId", detail))

    def _read_name(
        self, task: str, name: str, level: int | None, at: int, faults: list[tuple[str, str]]
    ) -> None:
        numbers = _NUMBERS.fullmatch(name, len(task)) if name.startswith(task) else None
        if numbers is None or max(map(int, numbers.groups())) > MAX_SAFE_INTEGER:
            explained = _explained(task, name)
            faults.append(("partition_name", f"partition_name {explained}, got {quoted(name)}"))
            return
        group, index = int(numbers[1]), int(numbers[2])
        if level is not None and group != level:
            detail = f"the group in partition_name is {group} but priorityLevel is {level}; they must be equal"
            faults.append(("partition_name", detail))
        if self._task is None or task != self._task[0]:
            return
        earlier = self._positions.setdefault((group, index), at)
        if earlier != at:
            detail = (
                f"partition_name {quoted(name)} names the same partition as /{earlier}: "
                f"level {group}, index {index}; a partition can occur only once"
            )
            faults.append(("partition_name", detail))
            return
        if group > self._seen_level:
            self._seen, self._seen_level = SeenIndexes(), group
        if group == self._seen_level and not self._seen.add(index):
            detail = f"partition_name {quoted(name)} occurred before; a partition can occur only once"
            faults.append(("partition_name", detail))

    def _ascend(self, level: int, faults: list[tuple[str, str]]) -> None:
        previous, self._previous_level = self._previous_level, level
        if level < previous:
            detail = f"priorityLevel {level} comes after {previous}; sort the array by ascending priorityLevel"
            faults.append(("priorityLevel", detail))

    def _add_records(self, records: int, faults: list[tuple[str, str]]) -> None:
        self._record_total += records
        if self._record_total > MAX_SAFE_INTEGER and not self._total_exceeded:
            self._total_exceeded = True
            detail = f"with this record_count, the record total of the array exceeds {MAX_SAFE_INTEGER}"
            faults.append(("record_count", detail))


def _explained(task: str, name: str) -> str:
    if not name.startswith(f"{task}-"):
        return "must begin with the taskId and a hyphen"
    numbers = _NUMBERS.fullmatch(name, len(task))
    if numbers is None:
        return "must have the form <taskId>-<group>-<index>, with group and index in decimal digits"
    part = "an index" if int(numbers[1]) <= MAX_SAFE_INTEGER else "a group"
    return f"must have {part} of at most {MAX_SAFE_INTEGER}"


def contract_error(violations: list[Violation], total: int) -> ContractError:
    problem: Problem = {
        "type": "urn:baton:problem:contract-violation",
        "title": "The body violates the contract",
        "status": 422,
        "detail": "the descriptors violate the contract; see errors",
        "code": "contract_violation",
        "retryable": False,
        "errors": violations,
    }
    if total > len(violations):
        problem["errorsOmitted"] = total - len(violations)
    return ContractError(problem, found_by="client")
