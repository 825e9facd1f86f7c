// Messages of the KFM contract for SQS FIFO queues: the reference for TypeScript and
// JavaScript on Node 20 and later.
//
// The file implements docs/kfm/specification.md with Node's own modules alone. Every error
// is a ContractError with the number of the broken rule. kfm_message.js is this file
// without its types, made by tsc.
import { createHash } from "node:crypto";
const maxDepth = 10_000;
const maxKeyBytes = 1024;
const maxMessageBytes = 1_048_576;
const members = ["dedupe_key", "event_id", "event_source", "event_time", "payload"];
const oldMembers = ["dataset_id", "event_type", "idempotency_key", "source_uri", "version"];
const white = /[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;
/** A value that the specification refuses. rule is the number of the broken rule. */
export class ContractError extends Error {
    rule;
    constructor(rule, message) {
        super(`${rule}: ${message}`);
        this.rule = rule;
    }
}
function need(condition, rule, message) {
    if (!condition)
        throw new ContractError(rule, message);
}
/** Returns bytes or a string as a string that UTF-8 can hold. */
function validText(text, rule) {
    if (typeof text === "string") {
        need(!/[\ud800-\udfff]/u.test(text), rule, "not valid Unicode"); // in a pattern with u, halves of pairs alone
        return text;
    }
    try {
        return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(text);
    }
    catch {
        throw new ContractError(rule, "not valid UTF-8");
    }
}
const bytes = (text) => Buffer.from(text, "utf8");
const lower = (text) => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
/** String.trim does not know U+0085 and takes U+FEFF for white space. */
function trim(text) {
    let [start, end] = [0, text.length];
    while (start < end && white.test(text[start]))
        start++;
    while (end > start && white.test(text[end - 1]))
        end--;
    return text.slice(start, end);
}
// Section 2: canonical JSON
const short = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };
const escaped = new Map(Object.entries(short).map(([letter, character]) => [character, "\\" + letter]));
const literals = [["true", true], ["false", false], ["null", null]];
/** Returns the value of a JSON text, with a Map for each object. */
export function parse(source) {
    const text = validText(source, "J2");
    const stack = [];
    let at = 0;
    const match = (pattern) => {
        pattern.lastIndex = at;
        const found = pattern.exec(text);
        at += found ? found[0].length : 0;
        return found;
    };
    const blank = () => match(/[ \t\n\r]*/y);
    const readString = () => {
        const found = match(/"((?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)"/y);
        need(found, "J1", "not a string");
        const value = found[1].replace(/\\(?:u(....)|(.))/g, (_, unit, letter) => (unit ? String.fromCharCode(parseInt(unit, 16)) : short[letter] ?? letter));
        return validText(value, "J3");
    };
    const readName = () => {
        const top = stack[stack.length - 1];
        if (Array.isArray(top.container))
            return;
        top.name = readString();
        blank();
        need(text[at++] === ":", "J1", "expected a colon");
        blank();
    };
    const readScalar = () => {
        if (text[at] === '"')
            return readString();
        for (const [word, value] of literals) {
            if (text.startsWith(word, at)) {
                at += word.length;
                return value;
            }
        }
        const found = match(/-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y);
        need(found, "J1", "not a value");
        const number = Number(found[0]);
        need(Number.isFinite(number), "J10", "beyond the range of a double");
        need(found[1] || found[2] || integerOf(String(number)) === BigInt(found[0]), "J12", "an integer that a double does not hold");
        return number;
    };
    for (blank();;) {
        let value;
        if (text[at] === "[" || text[at] === "{") {
            need(stack.length < maxDepth, "J11", "nested too deeply");
            const container = text[at++] === "[" ? [] : new Map();
            stack.push({ container, name: "" });
            blank();
            if (text[at] !== "]" && text[at] !== "}") {
                readName();
                continue;
            }
            need(text[at++] === closing(container), "J1", "mismatched bracket");
            value = stack.pop().container;
        }
        else {
            value = readScalar();
        }
        for (;;) {
            const top = stack[stack.length - 1];
            blank();
            if (!top) {
                need(at === text.length, "J1", "data after the value");
                return value;
            }
            if (Array.isArray(top.container)) {
                top.container.push(value);
            }
            else {
                need(!top.container.has(top.name), "J4", "duplicate name");
                top.container.set(top.name, value);
            }
            const mark = text[at++];
            if (mark === ",")
                break;
            need(mark === closing(top.container), "J1", "expected a comma or the end of the container");
            value = stack.pop().container;
        }
        blank();
        readName();
    }
}
const closing = (container) => (Array.isArray(container) ? "]" : "}");
/** Returns the integer that a canonical text denotes. */
function integerOf(text) {
    const [mantissa, exponent] = text.split("e");
    const [whole, fraction = ""] = mantissa.split(".");
    return BigInt(whole + fraction.padEnd(Number(exponent ?? 0), "0"));
}
/** Returns the canonical text of a value. String(number) is the form of J9, and sort() compares UTF-16 code units. */
export function canonical(value) {
    const out = [];
    const todo = [[value, 0]]; // values with their depth, and texts with depth -1
    for (let next = todo.pop(); next; next = todo.pop()) {
        const [item, depth] = next;
        if (depth < 0) {
            out.push(item);
        }
        else if (item === null || typeof item === "boolean") {
            out.push(String(item));
        }
        else if (typeof item === "string") {
            out.push(quote(item));
        }
        else if (typeof item === "number") {
            need(Number.isFinite(item), "J10", "not a finite number");
            out.push(String(item));
        }
        else if (Array.isArray(item)) {
            need(depth < maxDepth, "J11", "nested too deeply");
            out.push("[");
            todo.push(["]", -1]);
            for (let i = item.length - 1; i >= 0; i--)
                todo.push([item[i], depth + 1], [i ? "," : "", -1]);
        }
        else if (typeof item === "object") {
            need(depth < maxDepth, "J11", "nested too deeply");
            const all = item instanceof Map ? item : new Map(Object.entries(item));
            const names = [...all.keys()].sort();
            out.push("{");
            todo.push(["}", -1]);
            for (let i = names.length - 1; i >= 0; i--)
                todo.push([all.get(names[i]), depth + 1], [(i ? "," : "") + quote(names[i]) + ":", -1]);
        }
        else {
            throw new ContractError(typeof item === "bigint" ? "J12" : "J1", `JSON has no form for a ${typeof item}`);
        }
    }
    return out.join("");
}
function quote(text) {
    const escape = (c) => (c === '"' || c === "\\" ? "\\" + c : escaped.get(c) ?? "\\u00" + c.charCodeAt(0).toString(16).padStart(2, "0"));
    return '"' + validText(text, "J2").replace(/["\\\x00-\x1f]/g, escape) + '"';
}
/** Returns the canonical form of a JSON text. */
export const canonicalize = (source) => canonical(parse(source));
// Section 3: hashes
export const bodyHash = (body) => createHash("sha256").update(body).digest("hex");
export const bodyMD5 = (body) => createHash("md5").update(body).digest("hex");
// Section 4: dedupe keys
export function joinKey(...parts) {
    need(parts.length > 0, "K3", "a key needs a part");
    for (const part of parts)
        need(part.length > 0, "K3", "an empty part makes different events one");
    return checkKey(parts.map((part) => plainText(part, "K4").replace(/[\\|]/g, "\\$&")).join("|"));
}
function plainText(source, rule) {
    const text = validText(source, rule);
    need(!/[\x00-\x1f\x7f-\x9f]/.test(text), rule, "control character");
    return text;
}
export function checkKey(source) {
    need(source.length > 0, "K3", "empty dedupe_key");
    const key = plainText(source, "K4");
    need(trim(key) === key, "K5", "white space at an end of the key");
    need(bytes(key).length <= maxKeyBytes, "K6", "the key is too long; hash the long part");
    return key;
}
// Sections 5 and 6: time and event ID
/** Returns seconds since 1970 and the nine digits of the fraction. A Date has milliseconds. */
function readTime(text, grammar = "T5") {
    const found = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])(\d\d):(\d\d))$/.exec(text);
    need(found, grammar, "not an RFC 3339 time");
    const [year, month, day, hour, minute, second] = found.slice(1, 7).map(Number);
    const date = new Date(0);
    date.setUTCFullYear(year, month - 1, day);
    need(date.getUTCMonth() === month - 1 && date.getUTCDate() === day && day > 0, "T3", "no such day");
    need(hour < 24 && minute < 60 && second < 60, "T3", "no such time of day");
    const [offsetHour, offsetMinute] = [Number(found[9] ?? 0), Number(found[10] ?? 0)];
    need(offsetHour < 24 && offsetMinute < 60, grammar, "no such offset");
    const offset = (found[8] === "-" ? -1 : 1) * (offsetHour * 60 + offsetMinute) * 60;
    return [date.getTime() / 1000 + hour * 3600 + minute * 60 + second - offset, (found[7] ?? "").padEnd(9, "0")];
}
function writeTime(seconds, fraction) {
    const iso = new Date(seconds * 1000).toISOString(); // other years have a sign and six digits
    need(/^\d{4}-/.test(iso), "T3", "the year is not between 0000 and 9999");
    const digits = fraction.replace(/0+$/, "");
    const text = iso.slice(0, 19) + (digits && "." + digits) + "Z";
    need(text !== "0001-01-01T00:00:00Z", "T4", "the time was never set");
    return text;
}
/** Returns event_time for an RFC 3339 time with any offset. */
export const eventTime = (text) => writeTime(...readTime(text));
function checkEventTime(text) {
    const want = writeTime(...readTime(text, "T1"));
    need(text === want, text.endsWith("Z") ? "T2" : "T1", `the form of this time is ${want}`);
}
export function eventID(source, key, time) {
    const hash = createHash("sha256");
    for (const text of ["sqsfifo event_id v1", source, key]) {
        const length = Buffer.alloc(8);
        length.writeBigUInt64BE(BigInt(bytes(text).length));
        hash.update(length).update(text);
    }
    const [seconds, fraction] = readTime(time);
    const raw = Buffer.concat([Buffer.alloc(6), hash.digest().subarray(0, 10)]);
    raw.writeUIntBE(Math.max(seconds * 1000 + Number(fraction.slice(0, 3)), 0), 0, 6);
    raw[6] = 0x70 | (raw[6] & 0x0f);
    raw[8] = 0x80 | (raw[8] & 0x3f);
    return raw.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
export function checkEventID(text) {
    need(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(text), "I5", "not a lower-case UUID of version 7");
    return text;
}
// Section 7: event source
export function checkSource(source, organization) {
    const labels = source.split(".");
    need(labels.length === 3, "S1", "a source has three labels");
    need(labels.every((label) => /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(label)), "S2", "not a label");
    need(labels[0] === (organization ?? labels[0]), "S3", `the first label is not ${organization}`);
    return source;
}
// Section 8: envelope
const isObject = (value) => value instanceof Map || (typeof value === "object" && value !== null && !Array.isArray(value));
const refusedInBody = /[\ufffe\uffff]/;
/** Returns the body of an event. */
export function envelope(event) {
    const { source, time, payload, storedID, organization = "kfm" } = event;
    need(isObject(payload), "E4", "payload is not an object");
    checkSource(source, organization);
    const key = checkKey(event.key);
    const id = storedID ? checkEventID(storedID) : eventID(source, key, time);
    const body = canonical({ dedupe_key: key, event_id: id, event_source: source, event_time: eventTime(time), payload });
    need(!refusedInBody.test(body), "E5", "SQS refuses U+FFFE and U+FFFF");
    return body;
}
/** Returns the members of a body that keeps the contract. Without an organization every one is accepted. */
export function checkBody(body, organization) {
    const text = validText(body, "J2");
    const all = parse(text);
    need(canonical(all) === text, "E2", "not in canonical form");
    need(!refusedInBody.test(text), "E5", "SQS refuses U+FFFE and U+FFFF");
    need(all instanceof Map, "E1", "not an object");
    need(all.has("dedupe_key") || oldMembers.filter((name) => all.has(name)).length < 2, "E6", "an envelope of KFM v10.3.1");
    need(all.size === members.length && members.every((name) => all.has(name)), "E1", "the members are not exactly " + members.join(", "));
    const [key, id, source, time] = members.slice(0, 4).map((name) => {
        const value = all.get(name);
        need(typeof value === "string", "E3", `${name} is not a string`);
        return value;
    });
    checkKey(key);
    checkEventID(id);
    checkSource(source, organization);
    checkEventTime(time);
    need(isObject(all.get("payload")), "E4", "payload is not an object");
    return all;
}
// Section 9: idempotency key of a dataset
const numeric = "(?:0|[1-9][0-9]*)";
const prerelease = `(?:${numeric}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)`;
const semantic = new RegExp(`^${numeric}\\.${numeric}\\.${numeric}(?:-${prerelease}(?:\\.${prerelease})*)?(?:\\+[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*)?$`);
const ports = { http: "80", https: "443", ftp: "21", sftp: "22" };
const secret = /^(?:signature|sig|awsaccesskeyid|googleaccessid|key-pair-id|policy|token|access_token)$|^x-amz-|^x-goog-/;
/** Returns the normalised components and the idempotency key. */
export function dataset(id, version, uri, parameters = []) {
    const [trimmedID, trimmedVersion, trimmedURI] = [id, version, uri].map(component);
    need(trimmedID, "D5", "empty dataset_id");
    const number = trimmedVersion.replace(/^[vV]/, "");
    need(semantic.test(number), "D7", "not a semantic version");
    const out = { dataset_id: trimmedID, version: "v" + number, source_uri: normalURI(trimmedURI, parameters) };
    return { ...out, idempotency_key: "sha256:" + bodyHash(Object.values(out).join("|")) };
}
function component(source) {
    const text = trim(validText(source, "D4"));
    need(!text.includes("|"), "D3", "a component with a |");
    return plainText(text, "D4");
}
function normalURI(uri, parameters) {
    const found = /^([A-Za-z][A-Za-z0-9+.-]*):(?=\/)(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s.exec(uri);
    need(found, "D8", "not an absolute URI");
    const [scheme, authority, path, query, fragment] = [lower(found[1]), found[2] ?? "", found[3], found[4] ?? "", found[5] ?? ""];
    need(authority || path || scheme !== "file", "D8", "a file without a path");
    need(!authority.includes("@"), "D9", "user info is a secret");
    need(!/%(?![0-9A-Fa-f]{2})/.test(`${path}?${query}#${fragment}`), "D15", "a % without two digits");
    const parts = /^(\[.*\]|[^:]*)(?::([0-9]*))?$/s.exec(authority);
    need(parts, authority.includes("[") ? "D12" : "D10", "not a host and a port");
    let [host, port] = [lower(parts[1]), parts[2] ?? ""];
    need(host || (scheme === "file" && !authority), "D10", "no host");
    if (host.startsWith("["))
        host = `[${normalAddress(host.slice(1, -1))}]`;
    else
        need(/^[a-z0-9._-]*$/.test(host), "D11", "a character that a host does not have");
    if (port && port !== ports[scheme])
        host += ":" + port;
    const kept = (byte, encoded) => (encoded ? /[0-9A-Za-z._~-]/ : /[0-9A-Za-z/:@!$&'()*+,;=._~-]/).test(byte);
    const normal = binary(path).replace(/%(..)|[^]/g, (text, digits) => {
        const byte = digits ? String.fromCharCode(parseInt(digits, 16)) : text;
        return kept(byte, Boolean(digits)) ? byte : escapeByte(byte);
    });
    return `${scheme}://${host}${removeDots(normal) || "/"}${normalQuery(query, parameters)}`;
}
/** Returns the UTF-8 bytes of a text as a string with one character a byte. */
const binary = (text) => bytes(text).toString("latin1");
const escapeByte = (byte) => "%" + byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0");
function normalAddress(text) {
    let address = "";
    try {
        address = new URL(`http://[${text}]/`).hostname.slice(1, -1);
    }
    catch {
        // not an address
    }
    need(address && /^[0-9a-f:.]*$/.test(text), "D12", "not an IPv6 address without a zone");
    const mapped = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(address);
    if (!mapped)
        return address;
    const number = parseInt(mapped[1], 16) * 0x10000 + parseInt(mapped[2], 16);
    return "::ffff:" + [24, 16, 8, 0].map((shift) => (number / 2 ** shift) & 255).join(".");
}
function removeDots(path) {
    const segments = path.split("/");
    const kept = [];
    for (const segment of segments) {
        if (segment === ".." && kept.length > 1)
            kept.pop();
        else if (segment !== "." && segment !== "..")
            kept.push(segment);
    }
    if (/^\.\.?$/.test(segments.at(-1)))
        kept.push("");
    return kept.join("/");
}
function normalQuery(query, parameters) {
    const declared = parameters.map(binary);
    const pieces = query.split("&").filter(Boolean).map((piece) => {
        const at = piece.indexOf("=");
        const decoded = (at < 0 ? [piece] : [piece.slice(0, at), piece.slice(at + 1)]).map((text) => binary(text).replace(/\+/g, " ").replace(/%(..)/g, (_, digits) => String.fromCharCode(parseInt(digits, 16))));
        need(!secret.test(lower(decoded[0])), "D21", "a signed URL is a secret");
        need(declared.includes(decoded[0]), "D19", "a query parameter that is not declared");
        return decoded.map((text) => text.replace(/[^0-9A-Za-z._~-]/g, escapeByte)).join("=");
    });
    return pieces.length ? "?" + pieces.sort().join("&") : "";
}
export function checkDatasetKey(key) {
    need(/^sha256:[0-9a-f]{64}$/.test(key), "D22", "not sha256: and 64 lower-case digits");
    return key;
}
// Section 10: message
const noun = "[_.-]?(?:id|key|uuid|name)$";
const event = new RegExp(`(?:event|message|msg|dedup|dedupe|deduplication|unique|uniqueness|idempotency|txn|transaction|job|command)${noun}|uuid$`);
const attempt = new RegExp(`(?:correlation|causation|request|trace|span|session|attempt|invocation)${noun}`);
const benign = /^(?:traceparent|tracestate|baggage|b3|awstraceheader|content-type|sqsfifo-replay-run)$|^x-amzn-|(?:version|schemaid)$/;
/** Returns the parameters of SendMessage for a body of envelope, without QueueUrl. */
export function message(body, group, attributes = {}) {
    need(/^[!-~]{1,128}$/.test(group), "M1", "a group ID has 1 to 128 characters from ! to ~");
    const entries = Object.entries(attributes);
    checkIdentity(body, entries);
    need(entries.length <= 10, "M6", "more than 10 attributes");
    for (const [name, value] of entries)
        checkAttribute(name, value);
    const size = bytes(body + entries.map(([name, value]) => name + "String" + value).join("")).length;
    need(size <= maxMessageBytes, "M9", "the message is too large");
    const out = { MessageBody: body, MessageGroupId: group, MessageDeduplicationId: bodyHash(body) };
    if (entries.length > 0)
        out.MessageAttributes = Object.fromEntries(entries.map(([name, value]) => [name, { DataType: "String", StringValue: value }]));
    return out;
}
function checkIdentity(body, entries) {
    const carriers = entries.filter(([name]) => isIdentity(lower(name)));
    if (carriers.length === 0)
        return;
    const all = parse(body);
    const parts = all.get("dedupe_key").match(/(?:\\[\\|]|[^|])+/g) ?? [];
    const values = new Set(parts.map((part) => part.replace(/\\([\\|])/g, "$1")));
    const todo = [all];
    for (let item = todo.pop(); item !== undefined; item = todo.pop()) {
        if (item instanceof Map || Array.isArray(item))
            for (const inner of item.values())
                todo.push(inner);
        else if (item !== null)
            values.add(String(item));
    }
    for (const [name, value] of carriers)
        need(values.has(value), "M3", `attribute ${name} identifies the event, and the body does not have its value`);
}
const isIdentity = (name) => !benign.test(name) && !attempt.test(name) && event.test(name);
function checkAttribute(name, value) {
    need(/^[\p{L}\p{Nd}_.-]{1,256}$/u.test(name) && !/^\.|\.$/.test(name), "M7", "not the name of an attribute");
    need(!/^(?:aws|amazon)\./.test(lower(name)), "M7", "a reserved name");
    need(value && !/[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/.test(validText(value, "M8")), "M8", "an empty value, or a character that SQS refuses");
}
/** Sends a message with class SQS of @aws-sdk/client-sqs. Retries of the client send the same bytes. */
export async function send(client, queueURL, parameters) {
    const answer = await client.sendMessage({ QueueUrl: queueURL, ...parameters });
    need(answer.MD5OfMessageBody === bodyMD5(parameters.MessageBody), "H2", "SQS received another body");
    return answer;
}
