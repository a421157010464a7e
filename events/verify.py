"""Verify a file of `sortie events export`: python3 verify.py FILE KEYS [POSITION that it must reach]. It needs the library cryptography."""
import base64, decimal, functools, hashlib, json, sys
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

def number(x):  # as ECMAScript writes it
    sign, digits, exponent = decimal.Decimal(repr(float(x))).normalize().as_tuple()
    text, point = "".join(map(str, digits)), len(digits) + exponent
    if 0 < point <= 21:
        text = text.ljust(point, "0")[:point] + ("." + text[point:] if exponent < 0 else "")
    elif -6 < point <= 0:
        text = "0" if text == "0" else "0." + "0" * -point + text
    else:
        text = text[0] + ("." + text[1:] if len(text) > 1 else "") + "e%+d" % (point - 1)
    return ("-" if sign and text != "0" else "") + text

def canonical(v):  # RFC 8785
    if isinstance(v, dict):
        return "{" + ",".join(canonical(k) + ":" + canonical(v[k]) for k in sorted(v, key=lambda k: k.encode("utf-16-be"))) + "}"
    if isinstance(v, list): return "[" + ",".join(map(canonical, v)) + "]"
    return number(v) if type(v) in (int, float) else json.dumps(v, ensure_ascii=False)

def sha(data): return hashlib.sha256(data).digest()
def decode(text): return base64.b64decode(text, validate=True)
def check(ok, why):
    if not ok: sys.exit("not proved: " + why)

def root(roots):
    return functools.reduce(lambda right, left: sha(b"\1" + left + right), roots[-2::-1], roots[-1]) if roots else sha(b"")

def verify(lines, keys, until):
    size, roots, origin, tenant, first, last, since, outside, count = 0, [], None, None, 0, 0, 0, 0, 0
    for entry in map(json.loads, filter(None, map(bytes.strip, lines))):
        if "checkpoint" not in entry:
            payload, kind = decode(entry["payload"]), entry["payloadType"].encode()
            check(kind == b"application/vnd.orch.event.v1+json", "unknown payload type")
            signature = next(s for s in entry["signatures"] if s["keyid"] in keys)
            keys[signature["keyid"]].verify(decode(signature["sig"]), b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload))
            event = {name: value for name, value in json.loads(payload).items() if name != "notifier"}
            check(tenant in (None, event["tenantId"]), "an event of another tenant")
            tenant, leaf, n = event["tenantId"], sha(b"\0" + canonical(event).encode()), size
            while n & 1: leaf, n = sha(b"\1" + roots.pop() + leaf), n >> 1
            size, since, count, roots = size + 1, since + 1, count + 1, roots + [leaf]
            continue
        text, signatures = entry["checkpoint"].split("\n\n")
        name, blob = next(s.split(" ")[1:] for s in signatures.strip().split("\n") if s.split(" ")[1] in keys)
        keys[name].verify(decode(blob)[4:], text.encode() + b"\n")  # 4 bytes are a hash of the key
        lines_of = text.split("\n")
        subtrees = [decode(line[8:]) for line in lines_of[3:] if line.startswith("subtree ")]
        check(root(subtrees) == decode(lines_of[2]) and origin in (None, lines_of[0]), "a checkpoint of another stream")
        complete = (size, root(roots)) == (int(lines_of[1]), root(subtrees))
        check(complete or origin is None, "the events behind %d are not those of the stream" % last)
        if not complete: first, outside = int(lines_of[1]), outside + since
        size, roots, origin, last, since = int(lines_of[1]), subtrees, lines_of[0], int(lines_of[1]), 0
    check(origin and (last > first or not count), "no events between two checkpoints")
    check(last >= until, "the last checkpoint is at position %d, want %d or more" % (last, until))
    return "%s: events %d to %d are complete, %d more are signed" % (origin, first + 1, last, outside + since)

if len(sys.argv) not in (3, 4): sys.exit(__doc__)
with open(sys.argv[2]) as key_set, open(sys.argv[1], "rb") as lines:
    public = {k["kid"]: base64.urlsafe_b64decode(k["x"] + "=") for k in json.load(key_set)["keys"] if k.get("crv") == "Ed25519"}
    print(verify(lines, {name: Ed25519PublicKey.from_public_bytes(key) for name, key in public.items()}, int((sys.argv + [0])[3])))
