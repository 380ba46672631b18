"""Free text without names: known names are replaced, words of Kafka and the audit stay, the rest is removed. Pure.

A text is a log line, a message, a path. First come names that hold more than letters, digits, dots, dashes and
underscores, the longest first, as they are and as JSON writes them; addresses; times. What is left is cut into tokens.
A token is a known name, or a partition of one; a number; or made of words of the vocabulary. Any other is a name that
no table has: it is replaced like one.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from ipaddress import IPv4Network, ip_address
from pathlib import Path

from highwater.pipelines.base.syntax import parse_source
from highwater.pipelines.redact.pseudonyms import HOST, NAME, Pseudonyms

_ROOT = Path(__file__).parents[2]
#: Folders with the words of log lines, columns and messages.
_ROOMS = ("controllers", "data_dir", "grammars", "incidents", "kafka", "quality", "replay", "report", "rules", "timing")
_FOLDERS = ("schemas", *(f"pipelines/{name}" for name in _ROOMS))
#: Texts that Kafka logs, by the classes that log them, texts of rules, and tables.
_TEXTS = ("pipelines/grammars/templates.toml", "pipelines/rules/texts.toml", "schemas/tables/*.toml")
_WORD = re.compile("[A-Za-z]+")
_COMMENT = re.compile("^ *#.*", re.MULTILINE)
#: Values and names of files that no grammar spells out.
_FURTHER = (
    "User ANONYMOUS PLAINTEXT SSL SASL CONTROLLER INTERNAL EXTERNAL localhost true false null var lib opt log logs "
    "data tmp gz zst xz bz lz zip tar tgz json txt confluent kafka python rdkafka librdkafka apache java scala go "
    "dotnet IV FileRecords MemoryRecords HeapByteBuffer name topic host address client group principal"
)


@cache
def read_vocabulary() -> frozenset[str]:
    """Return the words in the strings of the code, which texts may keep. Takes a second or two."""
    words = set(_WORD.findall(_FURTHER))
    for folder in _FOLDERS:
        for path in sorted((_ROOT / folder).rglob("*.py")):
            words |= collect_words(path.read_text(encoding="utf-8"))
    for path in (path for pattern in _TEXTS for path in sorted(_ROOT.glob(pattern))):
        words |= set(_WORD.findall(_COMMENT.sub("", path.read_text(encoding="utf-8"))))
    # A letter and a number are a name sooner than a word.
    return frozenset({word for word in words if len(word) > 1} | {"a", "A"})


def collect_words(source: str) -> set[str]:
    """Return the words in a module's strings, and the field names of its classes, also as in JSON (``requestApiKey``).

    Docstrings are ignored, because they may contain examples.
    """
    tree = parse_source(source)
    fields = {
        node.target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    prose = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    named = {word for field in fields for word in (*_WORD.findall(field), _convert_name(field))}
    return named | {
        word
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
        for word in _WORD.findall(node.value)
    }


def _convert_name(name: str) -> str:
    first, *rest = name.strip("_").split("_")
    return first + "".join(map(str.capitalize, rest))


_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")
#: A name that could be a number, or is next to nothing, is known by the key before it only.
_FAINT = re.compile(r"[\d._\-]*|\W{0,2}|.", re.DOTALL)
_PUBLIC = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?Z?|CRC [0-9a-f]{8}\b"
_IPV4 = r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\w)"
_IPV6 = r"(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:%\w+)?(?![\w:])"
#: Versions up to 0.11 look like addresses of a network that has none.
_NO_ADDRESSES = IPv4Network("0.0.0.0/8")
_KEYS = "client_?[iI]d|group_?[iI]d|transactional_?[iI]d|member_?[iI]d|principal|topic|topicName|name"
_KEYED = rf"\b(?:{_KEYS})\"?\s*[:=]\s*\"?(?P<faint>[^\w\s\"]?(?:\d+|\w))(?=[\"\s,;)\]}}]|$)"
_TOKEN = re.compile(r"(?<![.\-])[.\-]*+\w++(?:[.\-]++\w++)*+[.\-]*+")
#: A partition, or the folder of one that is to go or to come.
_PARTITION = re.compile(r"(.+)(-\d+(?:\.[0-9a-f]{32}-[a-z]+)?)")
_NUMBER = re.compile(r"[\d._\-]*|T[0-3]|-?[\d.]+(?:ms|s|us|[kKMGT]i?B)|0x[0-9a-fA-F]+")
#: Classes that log, or are thrown.
_CLASS = re.compile(r"(?:kafka|org\.apache\.(?:kafka|zookeeper)|java)(?:\.[a-z]\w*)*\.[A-Z]\w*")
_LETTERS = re.compile(r"[^\W\d_]+")
#: What values and sentences of the audit's own are written in.
_OWN_CHARS = re.compile(r"[\w .,:;()'/=+\-\[\]]*", re.ASCII)
_PORT = re.compile(r":\d{2,5}(?![\d.])")
#: Before a port a name of several parts is a host's, whatever words it is of; but for a place in a source file.
_HOST_LIKE = re.compile(r"(?=.*[.\-]).*(?<!\.java)(?<!\.scala)")
_FOREIGN = re.compile(r"[^\x00-\x7f…]")
#: A text of this length was cut, or one that says so. The rest of a name that was cut is not a known name.
CUT_CHARS = 2000
_CUT = re.compile(r"…(?: \(\d+ more characters\))?$")
_TAIL_CHARS_MAX = 400


class Redactor:
    """Replaces names in texts.

    Args:
        pseudonyms: created from all names in the tables.
    """

    def __init__(self, pseudonyms: Pseudonyms) -> None:
        self.pseudonyms = pseudonyms
        self._known = dict(pseudonyms.known)
        self._plain = {name for name in self._known if _PLAIN_NAME.fullmatch(name) and not _FAINT.fullmatch(name)}
        self._odd = {
            spelled: name
            for name in self._known
            if not _PLAIN_NAME.fullmatch(name) and not _FAINT.fullmatch(name)
            for spelled in _list_spellings(name)
        }
        odd = "|".join(
            _match_whole(spelled) for spelled in sorted(self._odd, key=lambda spelled: (-len(spelled), spelled))
        )
        self._spans = re.compile(
            f"{f'(?P<odd>{odd})|' if odd else ''}(?P<kept>{_PUBLIC})|(?P<ip>{_IPV4}|{_IPV6})|(?P<keyed>{_KEYED})"
        )
        self._tail = min(max(map(len, (*self._odd, *self._plain)), default=0), _TAIL_CHARS_MAX)
        self._words = read_vocabulary()
        self._texts: dict[str, str] = {}

    def name(self, kind: str, name: str) -> str:
        """Return the pseudonym of a name of this kind."""
        return self.pseudonyms.name(kind, name)

    def identity(self, text: str) -> str:
        """Return another hash for a hash of names."""
        return self.pseudonyms.identity(text)

    def value(self, text: str) -> str:
        """Return a value unchanged if it only has known words of the code, else its redacted text."""
        return text if _OWN_CHARS.fullmatch(text) and self._is_own(text) else self.text(text)

    def sentence(self, text: str) -> str:
        """Return a sentence unchanged if it only has known words of the code, else its redacted text."""
        words = (letters for letters in _LETTERS.findall(text) if len(letters) > 1)
        is_own = _OWN_CHARS.fullmatch(text) is not None and all(letters in self._words for letters in words)
        return text if is_own else self.text(text)

    def unread(self, text: str) -> str:
        """Return an unparsed text unchanged if it is an identifier of the code, else only its length."""
        is_id = re.fullmatch(r"[a-z0-9_.]*", text) is not None and self._is_own(text)
        return text if is_id else f"[unread: {len(text)} characters]"

    def text(self, text: str) -> str:
        """Return a text without names."""
        if text not in self._texts:
            self._texts[text] = "".join(self._redact_pieces(text))
        return self._texts[text]

    def _redact_pieces(self, text: str) -> Iterator[str]:
        cut = _CUT.search(text)
        was_cut = cut is not None or len(text) >= CUT_CHARS
        end = cut.start() if cut else len(text)
        # The end of a text that was cut may be half a name: nothing but whole known names is taken from there.
        last = end - self._tail if was_cut else end
        place = 0
        for match in self._spans.finditer(text, 0, end):
            yield from self._redact_tokens(text[place : min(match.start(), max(last, place))])
            yield self._redact_span(match)
            place = match.end()
        yield from self._redact_tokens(text[place : max(last, place)])
        if was_cut:
            yield text[end:] or "…"

    def _redact_span(self, match: re.Match[str]) -> str:
        text, groups = match[0], match.groupdict()
        if groups.get("odd") is not None:
            return self._known[self._odd[text]]
        if groups["ip"] is not None:
            return self._redact_address(text)
        if groups["keyed"] is not None:
            faint = match["faint"]
            return f"{''.join(self._redact_tokens(text[: len(text) - len(faint)]))}{self._known.get(faint, faint)}"
        return text

    def _redact_address(self, text: str) -> str:
        try:
            address = ip_address(text.partition("%")[0])
        except ValueError:
            return "".join(self._redact_tokens(text))
        return text if address.version == 4 and address in _NO_ADDRESSES else self.pseudonyms.address(str(address))

    def _redact_tokens(self, text: str) -> Iterator[str]:
        place = 0
        for match in _TOKEN.finditer(text):
            yield _FOREIGN.sub("?", text[place : match.start()])
            place = match.end()
            yield self._redact_token(match[0], HOST if _PORT.match(text, place) else NAME)
        yield _FOREIGN.sub("?", text[place:])

    def _redact_token(self, token: str, kind: str) -> str:
        if token in self._plain:
            return self._known[token]
        match = _PARTITION.fullmatch(token)
        if match and match[1] in self._known:
            return f"{self._known[match[1]]}{match[2]}"
        bare = token.strip(".-")
        if bare != token:
            before, after = token.split(bare, 1) if bare else (token, "")
            return f"{before}{self._redact_token(bare, kind) if bare else ''}{after}"
        if _NUMBER.fullmatch(token) or _CLASS.fullmatch(token):
            return token
        if self._is_own(token) and not (kind == HOST and _HOST_LIKE.fullmatch(token)):
            # A part that is somebody's name is none of the words.
            return "".join(self._known[part] if part in self._plain else part for part in re.split(r"([.\-])", token))
        return self.pseudonyms.name(kind, token)

    def _is_own(self, text: str) -> bool:
        return text.isascii() and all(letters in self._words for letters in _LETTERS.findall(text))


def _list_spellings(name: str) -> set[str]:
    """Return how a name may be written: plain, as stored in a report, and in JSON with and without escapes."""
    stored = name.encode("utf-8", "replace").decode("utf-8")
    escaped = {
        json.dumps(text, ensure_ascii=ascii_only)[1:-1] for text in (name, stored) for ascii_only in (True, False)
    }
    return {name, stored} | escaped


def _match_whole(text: str) -> str:
    """Return a regular expression for a text that is not part of a longer word."""
    before = r"(?<!\w)" if text[0].isalnum() or text[0] == "_" else ""
    after = r"(?!\w)" if text[-1].isalnum() or text[-1] == "_" else ""
    return f"{before}{re.escape(text)}{after}"
