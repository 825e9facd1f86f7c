"""Messages of the KFM contract for SQS FIFO queues: the reference for Python 3.9 and later.

The file implements docs/kfm/specification.md with the standard library alone. Every error
is a ContractError with the number of the broken rule. Copy the file, read it, or test
another implementation against it.
"""
from __future__ import annotations

import datetime
import hashlib
import ipaddress
import re
import unicodedata
from decimal import Decimal

MAX_DEPTH = 10_000
MAX_INTEGER = 2**53 - 1
MAX_KEY_BYTES = 1024
MAX_MESSAGE_BYTES = 1_048_576
MEMBERS = ("dedupe_key", "event_id", "event_source", "event_time", "payload")
OLD_MEMBERS = ("dataset_id", "event_type", "idempotency_key", "source_uri", "version")
WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"


class ContractError(ValueError):
    """A value that the specification refuses. rule is the number of the broken rule."""

    def __init__(self, rule: str, message: str):
        super().__init__(f"{rule}: {message}")
        self.rule = rule


def need(condition: object, rule: str, message: str) -> None:
    if not condition:
        raise ContractError(rule, message)


def valid_text(text: str | bytes, rule: str) -> str:
    """Returns bytes or a string as a string that UTF-8 can hold."""
    try:
        if isinstance(text, bytes):
            return text.decode("utf-8")
        text.encode("utf-8")
        return text
    except UnicodeError:
        raise ContractError(rule, "not valid Unicode") from None


# Section 2: canonical JSON

PLAIN = r'[^"\\\x00-\x1f]*'
STRING = re.compile(rf'"{PLAIN}(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{{4}}){PLAIN})*"')
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
BLANK = re.compile(r"[ \t\n\r]*")
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
LITERALS = {"true": True, "false": False, "null": None}
SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
ESCAPED = {**{chr(c): f"\\u{c:04x}" for c in range(32)}, **{v: "\\" + k for k, v in SHORT.items()}, '"': '\\"', "\\": "\\\\"}


def parse(source: str | bytes):
    """Returns the value of a JSON text. An integer literal is an int while a double holds it exactly."""
    text = valid_text(source, "J2")
    at = BLANK.match(text, 0).end()
    stack: list = []  # open arrays, and open objects with the name of the member
    while True:
        value, at, opened = read_token(text, at)
        if opened:
            need(len(stack) < MAX_DEPTH, "J11", "nested too deeply")
            stack.append([value, None])
            at = BLANK.match(text, at).end()
            if text[at:at + 1] not in ("]", "}"):
                at = read_name(text, at, stack[-1])
                continue
            need(text[at] == ("]" if isinstance(value, list) else "}"), "J1", "mismatched bracket")
            stack.pop()
            at += 1
        while stack:  # the value ends a member of each container that ends after it
            container, name = stack[-1]
            if isinstance(container, list):
                container.append(value)
            else:
                need(name not in container, "J4", "duplicate name")
                container[name] = value
            at = BLANK.match(text, at).end()
            mark = text[at:at + 1]
            at = BLANK.match(text, at + 1).end()
            if mark == ",":
                at = read_name(text, at, stack[-1])
                break
            need(mark == ("]" if isinstance(container, list) else "}"), "J1", "expected a comma or the end of the container")
            at = at if len(stack) > 1 else BLANK.match(text, at).end()
            value = stack.pop()[0]
        else:
            need(BLANK.match(text, at).end() == len(text), "J1", "data after the value")
            return value


def read_name(text: str, at: int, top: list) -> int:
    """Reads the name of the next member of an object into top."""
    if isinstance(top[0], list):
        return at
    need(text[at:at + 1] == '"', "J1", "expected a name")
    top[1], at, _ = read_token(text, at)
    at = BLANK.match(text, at).end()
    need(text[at:at + 1] == ":", "J1", "expected a colon")
    return BLANK.match(text, at + 1).end()


def read_token(text: str, at: int):
    """Returns a value, the end of its token, and whether it is an open container."""
    first = text[at:at + 1]
    if first in ("[", "{"):
        return ([] if first == "[" else {}), at + 1, True
    if first == '"':
        found = STRING.match(text, at)
        need(found, "J1", "not a string")
        return unescape(found.group()[1:-1]), found.end(), False
    for word, value in LITERALS.items():
        if text.startswith(word, at):
            return value, at + len(word), False
    found = NUMBER.match(text, at)
    need(found, "J1", "not a value")
    number = float(found.group())
    need(number not in (float("inf"), float("-inf")), "J10", "beyond the range of a double")
    if found.group(1) is None and found.group(2) is None:
        need(Decimal(number_text(number)) == Decimal(found.group()), "J12", "an integer that a double does not hold")
        number = int(found.group()) if abs(number) <= MAX_INTEGER else number
    return number, found.end(), False


def unescape(text: str) -> str:
    if "\\" not in text:
        return text
    text = ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else SHORT.get(m[2], m[2]), text)
    try:  # joins the halves of pairs
        return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
    except UnicodeError:
        raise ContractError("J3", "lone surrogate") from None


def number_text(number: float) -> str:
    """Returns the canonical text of a double. repr has the shortest digits in another layout."""
    need(number - number == 0, "J10", "not a finite number")
    if number == 0:
        return "0"
    mantissa, _, exponent = repr(abs(float(number))).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    sign = "-" if number < 0 else ""
    if len(digits) <= point <= 21:
        return sign + digits.ljust(point, "0")
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    return f"{sign}{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e{point - 1:+d}"


def canonical(value) -> str:
    """Returns the canonical text of a value: dict, list, tuple, str, int, float, bool or None."""
    out: list[str] = []
    todo: list = [(value, 0)]  # values with their depth, and texts with depth -1
    while todo:
        item, depth = todo.pop()
        if depth < 0:
            out.append(item)
        elif item is None or isinstance(item, bool):
            out.append({None: "null", True: "true", False: "false"}[item])
        elif isinstance(item, str):
            out.append(quote(item))
        elif isinstance(item, int):
            need(abs(item) <= MAX_INTEGER, "J12", "an integer that a double does not hold")
            out.append(str(int(item)))
        elif isinstance(item, float):
            out.append(number_text(item))
        elif isinstance(item, (list, tuple)):
            need(depth < MAX_DEPTH, "J11", "nested too deeply")
            out.append("[")
            todo.append(("]", -1))
            for i in range(len(item) - 1, -1, -1):
                todo.append((item[i], depth + 1))
                todo.extend([(",", -1)] if i else [])
        elif isinstance(item, dict):
            need(depth < MAX_DEPTH, "J11", "nested too deeply")
            need(all(isinstance(name, str) for name in item), "J1", "the name of a member is not a string")
            names = sorted(item, key=lambda name: valid_text(name, "J2").encode("utf-16-be"), reverse=True)
            out.append("{")
            todo.append(("}", -1))
            for i, name in enumerate(names):
                todo.append((item[name], depth + 1))
                todo.append((("," if i < len(names) - 1 else "") + quote(name) + ":", -1))
        else:
            raise ContractError("J1", f"JSON has no form for {type(item).__name__}")
    return "".join(out)


def quote(text: str) -> str:
    return '"' + re.sub(r'["\\\x00-\x1f]', lambda m: ESCAPED[m[0]], valid_text(text, "J2")) + '"'


def canonicalize(source: str | bytes) -> str:
    """Returns the canonical form of a JSON text."""
    return canonical(parse(source))


# Section 3: hashes


def body_hash(body: str | bytes) -> str:
    return hashlib.sha256(body if isinstance(body, bytes) else body.encode()).hexdigest()


def body_md5(body: str | bytes) -> str:
    return hashlib.md5(body if isinstance(body, bytes) else body.encode()).hexdigest()


# Section 4: dedupe keys


def join_key(*parts: str) -> str:
    need(parts, "K3", "a key needs a part")
    for part in parts:
        need(part, "K3", "an empty part makes different events one")
        plain_text(part, "K4")
    return check_key("|".join(valid_text(part, "K4").replace("\\", "\\\\").replace("|", "\\|") for part in parts))


def plain_text(text: str | bytes, rule: str) -> str:
    text = valid_text(text, rule)
    need(not re.search(r"[\x00-\x1f\x7f-\x9f]", text), rule, "control character")
    return text


def check_key(key: str) -> str:
    need(key, "K3", "empty dedupe_key")
    key = plain_text(key, "K4")
    need(key.strip(WHITE_SPACE) == key, "K5", "white space at an end of the key")
    need(len(key.encode()) <= MAX_KEY_BYTES, "K6", "the key is too long; hash the long part")
    return key


# Sections 5 and 6: time and event ID

TIME = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))")
CYCLE = 146_097  # days in 400 years


def read_time(text: str, grammar: str = "T5") -> tuple[int, int]:
    """Returns seconds since 1970 and nanoseconds. datetime has microseconds and no year 0."""
    found = TIME.fullmatch(text)
    need(found, grammar, "not an RFC 3339 time")
    year, month, day, hour, minute, second = (int(found[i]) for i in range(1, 7))
    need(hour < 24 and minute < 60 and second < 60, "T3", "no such time of day")
    try:
        days = datetime.date(2000 + year % 400, month, day).toordinal() - datetime.date(1970, 1, 1).toordinal()
    except ValueError:
        raise ContractError("T3", "no such day") from None
    offset = 0
    if found[8]:
        need(int(found[9]) < 24 and int(found[10]) < 60, grammar, "no such offset")
        offset = int(found[8] + "1") * (int(found[9]) * 3600 + int(found[10]) * 60)
    seconds = (days + (year // 400 - 5) * CYCLE) * 86400 + hour * 3600 + minute * 60 + second - offset
    return seconds, int((found[7] or "").ljust(9, "0"))


def write_time(seconds: int, nanoseconds: int) -> str:
    days, rest = divmod(seconds, 86400)
    cycles, days = divmod(days - (datetime.date(2000, 1, 1) - datetime.date(1970, 1, 1)).days, CYCLE)
    day = datetime.date(2000, 1, 1) + datetime.timedelta(days)
    year = day.year + 400 * cycles
    need(0 <= year <= 9999, "T3", "the year is not between 0000 and 9999")
    fraction = f".{nanoseconds:09}".rstrip("0").rstrip(".")
    text = f"{year:04}-{day.month:02}-{day.day:02}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}{fraction}Z"
    need(text != "0001-01-01T00:00:00Z", "T4", "the time was never set")
    return text


def event_time(text: str) -> str:
    """Returns event_time for an RFC 3339 time with any offset."""
    return write_time(*read_time(text))


def check_event_time(text: str) -> None:
    want = write_time(*read_time(text, "T1"))
    need(text == want, "T1" if not text.endswith("Z") else "T2", f"the form of this time is {want}")


def event_id(source: str, key: str, time: str) -> str:
    texts = [text.encode() for text in ("sqsfifo event_id v1", source, key)]
    digest = hashlib.sha256(b"".join(len(text).to_bytes(8, "big") + text for text in texts)).digest()
    seconds, nanoseconds = read_time(time)
    milliseconds = max(seconds * 1000 + nanoseconds // 1_000_000, 0)
    raw = bytearray(milliseconds.to_bytes(6, "big") + digest[:10])
    raw[6] = 0x70 | raw[6] & 0x0F
    raw[8] = 0x80 | raw[8] & 0x3F
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def check_event_id(text: str) -> str:
    ok = re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", text)
    need(ok, "I5", "not a lower-case UUID of version 7")
    return text


# Section 7: event source


def check_source(source: str, organization: str | None = None) -> str:
    labels = source.split(".")
    need(len(labels) == 3, "S1", "a source has three labels")
    need(all(re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", label) for label in labels), "S2", "not a label")
    need(organization in (None, labels[0]), "S3", f"the first label is not {organization}")
    return source


# Section 8: envelope


def envelope(source: str, key: str, time: str, payload: dict, stored_id: str | None = None, organization: str = "kfm") -> str:
    """Returns the body of an event."""
    need(isinstance(payload, dict), "E4", "payload is not an object")
    check_source(source, organization)
    members = {
        "dedupe_key": check_key(key),
        "event_id": check_event_id(stored_id) if stored_id else event_id(source, key, time),
        "event_source": source,
        "event_time": event_time(time),
        "payload": payload,
    }
    body = canonical(members)
    need("\ufffe" not in body and "\uffff" not in body, "E5", "SQS refuses U+FFFE and U+FFFF")
    return body


def check_body(body: str | bytes, organization: str | None = None) -> dict:
    """Returns the members of a body that keeps the contract. None accepts every organization."""
    text = valid_text(body, "J2")
    members = parse(text)
    need(canonical(members) == text, "E2", "not in canonical form")
    need("\ufffe" not in text and "\uffff" not in text, "E5", "SQS refuses U+FFFE and U+FFFF")
    need(isinstance(members, dict), "E1", "not an object")
    old = "dedupe_key" not in members and sum(name in members for name in OLD_MEMBERS) > 1
    need(not old, "E6", "an envelope of KFM v10.3.1")
    need(set(members) == set(MEMBERS), "E1", "the members are not exactly " + ", ".join(MEMBERS))
    need(all(isinstance(members[name], str) for name in MEMBERS[:4]), "E3", "a member that is not a string")
    check_key(members["dedupe_key"])
    check_event_id(members["event_id"])
    check_source(members["event_source"], organization)
    check_event_time(members["event_time"])
    need(isinstance(members["payload"], dict), "E4", "payload is not an object")
    return members


# Section 9: idempotency key of a dataset

NUMERIC = r"(?:0|[1-9][0-9]*)"
PRERELEASE = rf"(?:{NUMERIC}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
VERSION = re.compile(rf"{NUMERIC}\.{NUMERIC}\.{NUMERIC}(?:-{PRERELEASE}(?:\.{PRERELEASE})*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?")
URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?=/)(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
PORTS = {"http": "80", "https": "443", "ftp": "21", "sftp": "22"}
SECRETS = ("signature", "sig", "awsaccesskeyid", "googleaccessid", "key-pair-id", "policy", "token", "access_token")
UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"


def lower(text):
    """Returns text, str or bytes, in ASCII lower case."""
    return text.lower() if isinstance(text, bytes) else re.sub("[A-Z]+", lambda m: m[0].lower(), text)


def dataset(dataset_id: str, version: str, source_uri: str, parameters=()) -> dict:
    """Returns the normalised components and the idempotency key."""
    dataset_id, version, source_uri = (component(text) for text in (dataset_id, version, source_uri))
    need(dataset_id, "D5", "empty dataset_id")
    version = version[1:] if version[:1] in ("v", "V") else version
    need(VERSION.fullmatch(version), "D7", "not a semantic version")
    out = {"dataset_id": dataset_id, "version": "v" + version, "source_uri": normal_uri(source_uri, parameters)}
    out["idempotency_key"] = "sha256:" + body_hash("|".join(out.values()))
    return out


def component(text: str | bytes) -> str:
    text = valid_text(text, "D4").strip(WHITE_SPACE)
    need("|" not in text, "D3", "a component with a |")
    return plain_text(text, "D4")


def normal_uri(uri: str, parameters) -> str:
    found = URI.fullmatch(uri)
    need(found, "D8", "not an absolute URI")
    scheme, authority, path, query, fragment = lower(found[1]), found[2] or "", found[3], found[4] or "", found[5] or ""
    need(authority or path or scheme != "file", "D8", "a file without a path")
    need("@" not in authority, "D9", "user info is a secret")
    need(not re.search("%(?![0-9A-Fa-f]{2})", path + "?" + query + "#" + fragment), "D15", "a % without two digits")
    found = re.fullmatch(r"(\[.*\]|[^:]*)(?::([0-9]*))?", authority)
    need(found, "D10" if "[" not in authority else "D12", "not a host and a port")
    host, port = lower(found[1]), found[2] or ""
    need(host or scheme == "file" and not authority, "D10", "no host")
    if host.startswith("["):
        host = "[" + normal_address(host[1:-1]) + "]"
    need(re.fullmatch(r"[a-z0-9._-]*|\[.*\]", host), "D11", "a character that a host does not have")
    if port and port != PORTS.get(scheme):
        host += ":" + port
    path = remove_dots(re.sub(rb"%(..)|([^0-9A-Za-z/:@!$&'()*+,;=._~-])", normal_escape, path.encode()).decode())
    return f"{scheme}://{host}{path or '/'}{normal_query(query, parameters)}"


def normal_address(text: str) -> str:
    try:
        need("%" not in text, "D12", "an IPv6 zone")
        number = int(ipaddress.IPv6Address(text))
    except ipaddress.AddressValueError:
        raise ContractError("D12", "not an IPv6 address") from None
    if number >> 32 == 0xFFFF:
        return "::ffff:" + str(ipaddress.IPv4Address(number & 0xFFFFFFFF))
    return ipaddress.IPv6Address(number).compressed


def normal_escape(found) -> bytes:
    byte = bytes.fromhex(found[1].decode()) if found[1] else found[2]
    return byte if found[1] and byte in UNRESERVED else b"%%%02X" % byte[0]


def remove_dots(path: str) -> str:
    segments, kept = path.split("/"), []
    for segment in segments:
        if segment == ".." and len(kept) > 1:
            kept.pop()
        elif segment not in (".", ".."):
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/".join(kept)


def normal_query(query: str, parameters) -> str:
    declared = {name.encode() for name in parameters}
    pieces = []
    for piece in filter(None, query.split("&")):
        decoded = [unescape_query(text) for text in piece.split("=", 1)]
        name = lower(decoded[0])
        secret = name.decode("latin-1") in SECRETS or name.startswith((b"x-amz-", b"x-goog-"))
        need(not secret, "D21", "a signed URL is a secret")
        need(decoded[0] in declared, "D19", "a query parameter that is not declared")
        pieces.append("=".join(re.sub(rb"[^0-9A-Za-z._~-]", lambda m: b"%%%02X" % m[0][0], text).decode() for text in decoded))
    return "?" + "&".join(sorted(pieces)) if pieces else ""


def unescape_query(text: str) -> bytes:
    return re.sub(rb"%(..)", lambda m: bytes.fromhex(m[1].decode()), text.replace("+", " ").encode())


def check_dataset_key(key: str) -> str:
    need(re.fullmatch("sha256:[0-9a-f]{64}", key), "D22", "not sha256: and 64 lower-case digits")
    return key


# Section 10: message

NOUN = "[_.-]?(?:id|key|uuid|name)"
EVENT = re.compile(f"(?:event|message|msg|dedup|dedupe|deduplication|unique|uniqueness|idempotency|txn|transaction|job|command){NOUN}\\Z|uuid\\Z")
ATTEMPT = re.compile(f"(?:correlation|causation|request|trace|span|session|attempt|invocation){NOUN}\\Z")
BENIGN = re.compile("(?:traceparent|tracestate|baggage|b3|awstraceheader|content-type|sqsfifo-replay-run)\\Z|x-amzn-|.*(?:version|schemaid)\\Z", re.DOTALL)
REFUSED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def message(body: str, group: str, attributes: dict[str, str] | None = None) -> dict:
    """Returns the parameters of SendMessage for a body of envelope, without QueueUrl."""
    need(re.fullmatch("[!-~]{1,128}", group), "M1", "a group ID has 1 to 128 characters from ! to ~")
    attributes = attributes or {}
    check_identity(body, attributes)
    need(len(attributes) <= 10, "M6", "more than 10 attributes")
    for name, value in attributes.items():
        check_attribute(name, value)
    size = sum(len((name + "String" + value).encode()) for name, value in attributes.items())
    need(len(body.encode()) + size <= MAX_MESSAGE_BYTES, "M9", "the message is too large")
    out = {"MessageBody": body, "MessageGroupId": group, "MessageDeduplicationId": body_hash(body)}
    if attributes:
        out["MessageAttributes"] = {name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()}
    return out


def check_identity(body: str, attributes: dict[str, str]) -> None:
    names = [name for name in attributes if is_identity(lower(name))]
    if not names:
        return
    members = parse(body)
    values = {part.replace("\0", "|").replace("\1", "\\") for part in
              members["dedupe_key"].replace("\\\\", "\1").replace("\\|", "\0").split("|")}
    todo = [members]
    while todo:
        item = todo.pop()
        if isinstance(item, (dict, list)):
            todo.extend(item.values() if isinstance(item, dict) else item)
        elif item is not None:
            values.add(item if isinstance(item, str) else canonical(item))
    for name in names:
        need(attributes[name] in values, "M3", f"attribute {name} identifies the event, and the body does not have its value")


def is_identity(name: str) -> bool:
    return not BENIGN.match(name) and not ATTEMPT.search(name) and bool(EVENT.search(name))


def check_attribute(name: str, value: str) -> None:
    allowed = all(c in "_-." or unicodedata.category(c)[0] == "L" or unicodedata.category(c) == "Nd" for c in name)
    need(allowed and 0 < len(name) <= 256 and name.strip(".") == name, "M7", "not the name of an attribute")
    need(not lower(name).startswith(("aws.", "amazon.")), "M7", "a reserved name")
    need(value and not REFUSED.search(valid_text(value, "M8")), "M8", "an empty value, or a character that SQS refuses")


def send(client, queue_url: str, parameters: dict) -> dict:
    """Sends a message with boto3.client("sqs") and returns the answer. Retries of the client send the same bytes."""
    answer = client.send_message(QueueUrl=queue_url, **parameters)
    need(answer["MD5OfMessageBody"] == body_md5(parameters["MessageBody"]), "H2", "SQS received another body")
    return answer
