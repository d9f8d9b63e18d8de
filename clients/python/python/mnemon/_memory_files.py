"""Text files of an assistant below /memories, each of them a record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ._records import digest, find
from .errors import ConflictError, InvalidError, NotFoundError, TooLargeError

if TYPE_CHECKING:
    from ._sync.client import Mnemon

T = TypeVar("T")

ROOT = "/memories"
# A record needs a text. The file's own is in the metadata then.
BLANK = "(blank file)"
# How often an edit is repeated if another process changed the file meanwhile.
ATTEMPTS = 20
LINES = 999_999
PATH_LENGTH = 1024


class MemoryFileError(Exception):
    """A command that was refused. The text is for the model."""


class _File(NamedTuple):
    id: str
    path: str
    text: str
    version: int


class MemoryFiles:
    """The commands of Anthropic's memory tool, with its answers word by word.

    Folders exist as long as there is a file below them. Edits are made only if the file is still as it
    was read, so that no edit of another process is lost.
    """

    def __init__(self, memory: Mnemon, name: str, user: str | None) -> None:
        self._memory = memory
        self._user = user
        self._space = digest("memory-files", name, user or "")
        self._tag = f"anm-{self._space}"

    def view(self, path: str, view_range: Sequence[int] | None = None) -> str:
        place = _checked(path)
        file = self._find(place)
        if file is None:
            return self._view_folder(path, place)
        lines = file.text.split("\n")
        if len(lines) > LINES:
            raise MemoryFileError(f"File {path} exceeds maximum line limit of 999,999 lines.")
        first, last = 1, len(lines)
        if view_range is not None and len(view_range) == 2:
            first = max(1, view_range[0])
            last = len(lines) if view_range[1] == -1 else view_range[1]
        return f"Here's the content of {path} with line numbers:\n" + _numbered(lines, first, last)

    def _view_folder(self, path: str, place: str) -> str:
        files = list(self._below(place))
        if not files and place != ROOT:
            raise _missing(path)
        total = sum(len(file.text.encode()) for file in files)
        sizes: dict[str, int] = {}
        for file in files:
            parts = file.path[len(place) + 1 :].split("/")
            if not any(part.startswith(".") for part in parts):
                for depth in range(1, min(len(parts), 2) + 1):
                    shown = "/".join(parts[:depth]) + ("/" if depth < len(parts) else "")
                    sizes[shown] = sizes.get(shown, 0) + len(file.text.encode())
        header = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
        ordered = sorted(sizes.items(), key=lambda one: one[0].rstrip("/").split("/"))
        return "\n".join([header, f"{_size(total)}\t{path}", *(f"{_size(n)}\t{path}/{name}" for name, n in ordered)])

    def create(self, path: str, text: str) -> str:
        place = _checked(path)
        if place == ROOT or self._is_folder(place):
            raise MemoryFileError(f"File {path} already exists")
        self._refuse_file_as_folder(place)
        if not self._add(place, text):
            raise MemoryFileError(f"File {path} already exists")
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old: str, new: str) -> str:
        def edit(text: str) -> tuple[str, int]:
            count = text.count(old) if old else 0
            if count == 0:
                raise MemoryFileError(
                    f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
                )
            if count > 1:
                lines = ", ".join(map(str, _lines_of(text, old)))
                raise MemoryFileError(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}. "
                    "Please ensure it is unique"
                )
            return text.replace(old, new), text[: text.find(old)].count("\n") + 1

        text, line = self._edit(path, edit)
        lines = text.split("\n")
        snippet = _numbered(lines, max(1, line - 2), min(len(lines), line + 2))
        return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"

    def insert(self, path: str, line: int, text: str) -> str:
        def edit(before: str) -> tuple[str, None]:
            lines = before.split("\n")
            if lines[-1] == "":
                lines.pop()
            if not 0 <= line <= len(lines):
                raise MemoryFileError(
                    f"Invalid `insert_line` parameter: {line}. It should be within the range [0, {len(lines)}]."
                )
            lines.insert(line, text.rstrip("\n"))
            after = "\n".join(lines)
            return after if after.endswith("\n") else after + "\n", None

        self._edit(path, edit)
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        place = _checked(path)
        if place == ROOT:
            raise MemoryFileError("Cannot delete the /memories directory itself")
        file = self._find(place)
        files = list(self._below(place)) if file is None else [file]
        if not files:
            raise MemoryFileError(f"The path {path} does not exist")
        for one in files:
            self._remove(one.id)
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        old, new = _checked(old_path), _checked(new_path)
        if old == ROOT:
            raise MemoryFileError("Cannot rename the /memories directory itself")
        if new == ROOT or self._find(new) is not None or self._is_folder(new):
            raise MemoryFileError(f"The destination {new_path} already exists")
        self._refuse_file_as_folder(new)
        if new.startswith(f"{old}/"):
            raise MemoryFileError(f"Cannot move {old_path} below itself")
        file = self._find(old)
        files = list(self._below(old)) if file is None else [file]
        if not files:
            raise MemoryFileError(f"The path {old_path} does not exist")
        for one in files:
            # The old file is removed last: an interruption leaves two copies, never none.
            if not self._add(new + one.path[len(old) :], one.text):
                raise MemoryFileError(f"The destination {new_path} already exists")
        for one in files:
            self._remove(one.id)
        return f"Successfully renamed {old_path} to {new_path}"

    def clear(self) -> str:
        for file in list(self._below(ROOT)):
            self._remove(file.id)
        return "All memory cleared"

    def _id(self, place: str) -> str:
        return f"anm-{digest(self._space, place)}"

    def _find(self, place: str) -> _File | None:
        found = find(self._memory, self._id(place))
        return None if found is None else _file(found)

    def _below(self, folder: str) -> Iterator[_File]:
        for found in self._memory.list_all(tags=[self._tag], limit=1000):
            file = _file(dict(found))
            if file.path.startswith(f"{folder}/"):
                yield file

    def _is_folder(self, place: str) -> bool:
        return any(True for _ in self._below(place))

    def _refuse_file_as_folder(self, place: str) -> None:
        parts = place.split("/")
        for length in range(3, len(parts)):
            above = "/".join(parts[:length])
            if self._find(above) is not None:
                raise MemoryFileError(f"The path {above} is not a directory.")

    def _add(self, place: str, text: str) -> bool:
        """Store a new file; false if there is one."""
        shown, metadata = _stored(text)
        metadata = {"path": place, **{k: v for k, v in metadata.items() if v is not None}}
        try:
            _clear_errors(
                lambda: self._memory.add(
                    shown, id=self._id(place), user=self._user, tags=[self._tag], metadata=metadata, origin="agent"
                )
            )
        except ConflictError:
            return False
        return True

    def _edit(self, path: str, edit: Callable[[str], tuple[str, T]]) -> tuple[str, T]:
        place = _checked(path)
        for _ in range(ATTEMPTS):
            file = self._find(place)
            if file is None:
                if place == ROOT or self._is_folder(place):
                    raise MemoryFileError(f"The path {path} is not a file.")
                raise _missing(path)
            text, answer = edit(file.text)
            shown, metadata = _stored(text)
            version = file.version
            try:
                _clear_errors(
                    lambda: self._memory.update(self._id(place), shown, metadata=metadata, if_version=version)
                )
            except (ConflictError, NotFoundError):
                continue
            return text, answer
        raise MemoryFileError(f"The file {path} is being changed by others all the time. Please try again.")

    def _remove(self, id: str) -> None:
        try:
            self._memory.delete(id)
        except NotFoundError:
            pass


def _clear_errors(call: Callable[[], object]) -> None:
    """Turn refusals of the text into an answer for the model."""
    try:
        call()
    except (TooLargeError, InvalidError) as error:
        raise MemoryFileError(str(error)) from error


def _stored(text: str) -> tuple[str, dict[str, Any]]:
    """Content and metadata of a file."""
    if text.strip():
        return text, {"blank": None}
    return BLANK, {"blank": text}


def _file(found: dict[str, Any]) -> _File:
    about: dict[str, Any] = found.get("metadata", {})
    blank = about.get("blank")
    return _File(found["id"], about["path"], found["content"] if blank is None else blank, found["version"])


def _checked(path: str) -> str:
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise MemoryFileError(f"Path must start with /memories, got: {path}")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in path or "\\" in path:
        raise MemoryFileError(f"Path {path} would escape /memories directory")
    if len(path) > PATH_LENGTH:
        raise MemoryFileError(f"The path is too long: at most {PATH_LENGTH} characters.")
    return "/" + "/".join(parts)


def _missing(path: str) -> MemoryFileError:
    return MemoryFileError(f"The path {path} does not exist. Please provide a valid path.")


def _numbered(lines: Sequence[str], first: int, last: int) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines[first - 1 : last], first))


def _lines_of(text: str, part: str) -> Iterator[int]:
    position = text.find(part)
    while position != -1:
        yield text[:position].count("\n") + 1
        position = text.find(part, position + 1)


def _size(size: int) -> str:
    units = ["B", "K", "M", "G"]
    power = min(max(0, size.bit_length() - 1) // 10, len(units) - 1)
    amount = size / 1024**power
    return f"{int(amount)}{units[power]}" if amount == int(amount) else f"{amount:.1f}{units[power]}"
