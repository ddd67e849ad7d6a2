"""The frame of the events: builds function URL events as they come from the wire, signs them, collects the stories and
writes the files.

It must never read the presets, the program or its tests: what is written here is a second opinion on every network,
made from that network's own formula, and is worth nothing once it copies the first. It must never use the clock or
chance either: the same input gives the same bytes, everywhere.

How a module describes a network:

    from wire import SECRET, md5, network, rfc3986

    def sign(request):
        request.put("hash", md5(request["trans_id"] + "-" + SECRET))

    wall = network("wall", sign=sign, source="192.0.2.1", applied="1", duplicate="DUP")
    credit = {"trans_id": "t-1", "user_id": "0042", "amount": "662.6500", "status": "1"}
    wall.event("credit", credit, "credited")
    wall.event("credit-again", credit, "duplicate")
    wall.event("reversal", credit | {"status": "2"}, "reversed")
    wall.event("forged", credit, "bad_signature", forge={"trans_id": "t-2"})

A request's fields are a dict, or a list of pairs where a name comes twice. A value is text, which is encoded, or
`Raw("%FF")`, which goes out as it stands; in a JSON body it is any JSON value, and `Raw("12.50")` is a number with
these very digits. `sign` is called with the request before it is sent and may read

    request["name"]     the decoded value of a field; a path of dots in JSON; `request.get("name", "")` where it may be
                        absent
    request.items()     the fields as pairs, decoded
    request.query       the raw query so far: in a GET all fields
    request.url         the public URL so far, with that query
    request.body        the raw body so far, as text: a form's pairs or JSON

and must say where the signature goes: `request.put(name, value)` adds a field at the end (in JSON at the top level or
at a path), `request.put(name, value, first=True)` at the front, `request.put_query(name, value)` a parameter of the URL
of a POST, and `request.header(name, value)` a header. `forge` changes fields after that, in place.
"""

import base64
import datetime
import hashlib
import hmac
import json
import pathlib
import urllib.parse

SECRET = "local-secret"
HOST = "abcdefghijklmnopqrstuvwxyz012345.lambda-url.eu-west-1.on.aws"
ADDRESS = "203.0.113.7"
START = 1780000000

ROOT = pathlib.Path(__file__).resolve().parents[2]
EVENTS = ROOT / "events"
EXPECTED = pathlib.Path(__file__).resolve().parent

NETWORKS = []


# Digests. Text is hashed as UTF-8.


def _bytes(text):
    return text if isinstance(text, bytes) else text.encode()


def md5(text):
    return hashlib.md5(_bytes(text)).hexdigest()


def sha1(text):
    return hashlib.sha1(_bytes(text)).hexdigest()


def sha256(text):
    return hashlib.sha256(_bytes(text)).hexdigest()


def hmac_bytes(algorithm, text, key=SECRET):
    return hmac.new(_bytes(key), _bytes(text), algorithm).digest()


def hmac_hex(algorithm, text, key=SECRET):
    return hmac_bytes(algorithm, text, key).hex()


def base64_text(raw):
    return base64.b64encode(raw).decode()


def base64url_text(raw):
    """Without padding."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


# Encodings of a value in a query or a form.


class Raw(str):
    """Goes out as it stands: percent-encoded already, or the digits of a JSON number."""


def rfc3986(text):
    """Space is %20; only letters, digits and - . _ ~ stay."""
    return urllib.parse.quote(text, safe="-._~")


def javascript(text):
    """encodeURIComponent: space is %20; ! ' ( ) * stay too."""
    return urllib.parse.quote(text, safe="-._~!'()*")


def php(text):
    """urlencode: space is +; only letters, digits and - . _ stay, ~ does not."""
    return urllib.parse.quote_plus(text, safe="-._").replace("~", "%7E")


def browser(text):
    """URLSearchParams: space is +; * - . _ stay, ~ does not."""
    return urllib.parse.quote_plus(text, safe="*-._").replace("~", "%7E")


def decoded(text):
    return urllib.parse.unquote_plus(text, errors="replace") if isinstance(text, Raw) else text


def pairs(fields, encode=rfc3986):
    """`name=value&…` in the order given."""
    items = fields.items() if isinstance(fields, dict) else fields
    return "&".join(f"{encode(name)}={value if isinstance(value, Raw) else encode(value)}" for name, value in items)


def json_text(value):
    """Compact JSON in the order given, with the digits of `Raw` as they are."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{json_text(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(json_text(inner) for inner in value) + "]"
    return json.dumps(value, ensure_ascii=False)


# Requests.


class Request:
    def __init__(self, network, fields, query, encode, path):
        self.network = network
        self.path = path
        self.carrier = network.carrier
        self.encode = encode
        self.headers = {}
        self._query = list(query)
        if self.carrier == "json":
            self.fields = _copy(fields)
        else:
            self.fields = list(fields.items() if isinstance(fields, dict) else fields)

    def __getitem__(self, name):
        if self.carrier == "json":
            found = self.fields
            for step in name.split("."):
                found = found[step]
            return found
        for known, value in self.fields:
            if known == name:
                return decoded(value)
        raise KeyError(name)

    def get(self, name, default=None):
        try:
            return self[name]
        except KeyError:
            return default

    def items(self):
        assert self.carrier != "json"
        return [(name, decoded(value)) for name, value in self.fields]

    @property
    def query(self):
        return pairs(self.fields if self.carrier == "query" else self._query, self.encode)

    @property
    def url(self):
        return f"https://{HOST}{self.path}" + (f"?{self.query}" if self.query else "")

    @property
    def body(self):
        if self.carrier == "query":
            return ""
        return json_text(self.fields) if self.carrier == "json" else pairs(self.fields, self.encode)

    def put(self, name, value, first=False):
        if self.carrier == "json":
            *path, last = name.split(".")
            into = self.fields
            for step in path:
                into = into[step]
            into[last] = value
        else:
            self.fields.insert(0 if first else len(self.fields), (name, value))

    def put_query(self, name, value):
        assert self.carrier != "query", "put is enough"
        self._query.append((name, value))

    def header(self, name, value):
        self.headers[name.lower()] = value

    def forge(self, name, value):
        if self.carrier == "json":
            assert self[name] != value
            self.put(name, value)
        elif any(known == name for known, _ in self.fields):
            self.fields = [(known, value if known == name else was) for known, was in self.fields]
        else:
            self._query = [(known, value if known == name else was) for known, was in self._query]
            if (name, value) not in self._query:
                assert name in self.headers, f"{name}: nothing to forge"
                self.headers[name] = value


def _copy(value):
    return {name: _copy(inner) for name, inner in value.items()} if isinstance(value, dict) else value


def _function_url_event(request, step, source, at):
    name = request.network.name
    unique = sha256(f"{name}-{step}")
    agent = request.network.agent
    method = "GET" if request.carrier == "query" else "POST"
    body = request.body
    headers = {
        "accept": "*/*",
        "accept-encoding": "gzip",
        "host": HOST,
        "user-agent": agent,
        "x-amzn-tls-cipher-suite": "TLS_AES_128_GCM_SHA256",
        "x-amzn-tls-version": "TLSv1.3",
        "x-amzn-trace-id": f"Root=1-{at:x}-{unique[:24]}",
        "x-forwarded-for": source,
        "x-forwarded-port": "443",
        "x-forwarded-proto": "https",
    }
    if method == "POST":
        headers["content-length"] = str(len(body.encode()))
        kind = "json" if request.carrier == "json" else "x-www-form-urlencoded"
        headers["content-type"] = f"application/{kind}"
    headers |= request.headers
    event = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": request.path,
        "rawQueryString": request.query,
        "headers": dict(sorted(headers.items())),
    }
    parameters = {}
    for known, value in urllib.parse.parse_qsl(request.query, keep_blank_values=True, errors="replace"):
        parameters[known] = f"{parameters[known]},{value}" if known in parameters else value
    if parameters:
        event["queryStringParameters"] = parameters
    event["requestContext"] = {
        "accountId": "anonymous",
        "apiId": HOST.split(".")[0],
        "domainName": HOST,
        "domainPrefix": HOST.split(".")[0],
        "http": {"method": method, "path": request.path, "protocol": "HTTP/1.1", "sourceIp": source, "userAgent": agent},
        "requestId": "-".join((unique[24:32], unique[32:36], f"4{unique[37:40]}", f"8{unique[41:44]}", unique[44:56])),
        "routeKey": "$default",
        "stage": "$default",
        "time": _time(at),
        "timeEpoch": at * 1000,
    }
    if body:
        form = request.carrier == "form"
        event["body"] = base64_text(body.encode()) if form else body
    event["isBase64Encoded"] = bool(body) and request.carrier == "form"
    return json.dumps(event, indent=2, ensure_ascii=False) + "\n"


def _time(at):
    moment = datetime.datetime.fromtimestamp(at, datetime.timezone.utc)
    month = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()[moment.month - 1]
    return f"{moment:%d}/{month}/{moment:%Y:%H:%M:%S} +0000"


# Stories.

OUTCOMES = {
    "offerwall": "credited duplicate reversed pending test ignored bad_signature bad_source bad_parameters".split(),
    "wallet": """bet won rolled_back nothing_to_roll_back voided rolled_back_before finished declined late duplicate conflict
        unknown_player balance ping bad_signature bad_parameters""".split(),
}


class Network:
    def __init__(self, name, contract, carrier, source, sign, encode, agent, bodies):
        assert carrier in ("query", "form", "json")
        self.contract = contract
        self.name, self.carrier, self.source, self.sign = name, carrier, source, sign
        self.encode, self.agent, self.bodies = encode, agent, bodies
        self.steps = []

    def event(self, step, fields, outcome, *, query=(), sign=None, forge=None, source=None, encode=None, answer=None, path=None):
        """The next request of this network's story, in the file `<network>-<step>.json`; to `path`, else to `/<network>`.

        `answer` is the body, or (status, body), where it is not what the network hears for this outcome anyway. A body
        may be a function of the request."""
        assert outcome in OUTCOMES[self.contract]
        assert all(step != known for known, *_ in self.steps), f"{self.name}-{step} twice"
        request = Request(self, fields, query.items() if isinstance(query, dict) else query, encode or self.encode, path or f"/{self.name}")
        signer = sign or self.sign
        if signer:
            signer(request)
        for name, value in (forge or {}).items():
            request.forge(name, value)
        at = START + 60 * len(self.steps)
        event = _function_url_event(request, step, source or self.source, at)
        status, body = self._answer(outcome, answer)
        self.steps.append((step, event, outcome, status, body(request) if callable(body) else body))

    def _answer(self, outcome, answer):
        answer = self.bodies[outcome] if answer is None else answer
        usual = {"bad_signature": 403, "bad_source": 403, "bad_parameters": 400}.get(outcome, 200)
        return answer if isinstance(answer, tuple) else (usual, answer)


def network(
    name,
    *,
    contract="offerwall",
    carrier="query",
    source=ADDRESS,
    sign=None,
    encode=rfc3986,
    agent="offer-network/1.0",
    applied="ok",
    duplicate=None,
    ignored=None,
    bad_signature="bad signature",
    bad_source="source address not allowed",
    bad_parameters=None,
):
    """A network and what it hears; a body, or (status, body), for each. `sign` is None where nothing is signed."""
    bodies = {
        "credited": applied,
        "reversed": applied,
        "duplicate": applied if duplicate is None else duplicate,
        "bad_signature": bad_signature,
        "bad_source": bad_source,
        "bad_parameters": bad_parameters,
    }
    bodies |= dict.fromkeys(("pending", "test", "ignored"), applied if ignored is None else ignored)
    made = Network(name, contract, carrier, source, sign, encode, agent, bodies)
    assert all(known.name != name for known in NETWORKS), f"{name} twice"
    NETWORKS.append(made)
    return made


# Files.


def files():
    """Every file by its path, with its content."""
    made = {}
    for contract in OUTCOMES:
        lines = ["file\toutcome\tstatus\tbody"]
        for known in (known for known in NETWORKS if known.contract == contract):
            for step, event, outcome, status, body in known.steps:
                made[EVENTS / contract / f"{known.name}-{step}.json"] = event
                assert isinstance(body, str), f"{known.name}-{step}: no answer"
                lines.append(f"{known.name}-{step}\t{outcome}\t{status}\t{json.dumps(body, ensure_ascii=False)}")
        made[EXPECTED / f"{contract}.tsv"] = "\n".join(lines) + "\n"
    return made


def write():
    """Writes every file; gives how many."""
    made = files()
    for path, content in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
    return len(made)


def differing():
    """The files that are missing or differ, and those of a network of ours that no story writes any more."""
    made = files()
    wrong = [path for path, content in made.items() if not path.exists() or path.read_bytes() != content.encode()]
    for path in sorted(EVENTS.glob("*/*.json")):
        if path not in made and any(path.name.startswith(f"{known.name}-") for known in NETWORKS):
            wrong.append(path)
    return [str(path.relative_to(ROOT)) for path in wrong]
