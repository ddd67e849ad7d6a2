"""The events of the offer walls and of the rewarded ads: what each sends, signed by that network's own formula.

It must never read the presets, the program or its tests, nor ask a clock or chance: the signatures here are a second
opinion on the presets, and are worth that only as long as neither copies from the other.

AdMob signs with ECDSA. Its events are signed with a key that is made below from a fixed text, for tests only: key id
1234567890, public key (SPKI, base64)
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEfmDUx2D7rCDWTZUTXxtrDtPWKu5drNF02EoC7f+9Ll3fmL9iY5e/OgXR0d0V/6Xf44n9dG6XR32WgtlAk4eY/w==
"""

import hashlib
import hmac
import urllib.parse

from wire import ADDRESS, SECRET, Raw, base64_text, base64url_text, md5, network, sha1, sha256

# ECDSA over P-256 with SHA-256, whose nonce is made of key and message (RFC 6979): one message, one signature. Slow and
# not constant in time, which is good enough for a key that everybody knows.

P = 2**256 - 2**224 + 2**192 + 2**96 - 1
B = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
SPKI_HEAD = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004")


def add(one, other):
    """The sum of two points; `None` is the point at infinity."""
    if one is None or other is None:
        return one or other
    (x1, y1), (x2, y2) = one, other
    if x1 == x2 and (y1 + y2) % P == 0:
        return None
    if one == other:
        slope = (3 * x1 * x1 - 3) * pow(2 * y1, -1, P)
    else:
        slope = (y2 - y1) * pow(x2 - x1, -1, P)
    x = (slope * slope - x1 - x2) % P
    return x, (slope * (x1 - x) - y1) % P


def times(factor, point):
    total = None
    while factor:
        if factor & 1:
            total = add(total, point)
        point = add(point, point)
        factor >>= 1
    return total


def hashed(message):
    return int.from_bytes(hashlib.sha256(message).digest(), "big")


def nonces(key, message):
    """The candidates of RFC 6979, section 3.2."""
    seed = key.to_bytes(32, "big") + (hashed(message) % N).to_bytes(32, "big")
    k, v = bytes(32), b"\x01" * 32
    for mark in (b"\x00", b"\x01"):
        k = hmac.digest(k, v + mark + seed, "sha256")
        v = hmac.digest(k, v, "sha256")
    while True:
        v = hmac.digest(k, v, "sha256")
        yield int.from_bytes(v, "big")
        k = hmac.digest(k, v + b"\x00", "sha256")
        v = hmac.digest(k, v, "sha256")


def ecdsa_sign(key, message):
    """The two numbers of a signature."""
    for nonce in nonces(key, message):
        if 0 < nonce < N:
            r = times(nonce, G)[0] % N
            s = pow(nonce, -1, N) * (hashed(message) + r * key) % N
            if r and s:
                return r, s


def ecdsa_verifies(public, message, signature):
    r, s = signature
    if not (0 < r < N and 0 < s < N):
        return False
    inverse = pow(s, -1, N)
    point = add(times(hashed(message) * inverse % N, G), times(r * inverse % N, public))
    return point is not None and point[0] % N == r


def der(signature):
    def integer(number):
        raw = number.to_bytes(number.bit_length() // 8 + 1, "big")
        return bytes([2, len(raw)]) + raw

    raw = integer(signature[0]) + integer(signature[1])
    return bytes([0x30, len(raw)]) + raw


def from_der(raw):
    assert raw[0] == 0x30 and raw[1] == len(raw) - 2 and raw[2] == 2
    end = 4 + raw[3]
    assert raw[end] == 2 and end + 2 + raw[end + 1] == len(raw)
    return int.from_bytes(raw[4:end], "big"), int.from_bytes(raw[end + 2 :], "big")


def spki(public):
    return base64_text(SPKI_HEAD + public[0].to_bytes(32, "big") + public[1].to_bytes(32, "big"))


ADMOB_KEY_ID = "1234567890"
ADMOB_KEY = hashed(b"postback: the key of local AdMob events") % (N - 1) + 1
ADMOB_PUBLIC = times(ADMOB_KEY, G)
assert spki(ADMOB_PUBLIC) in __doc__, spki(ADMOB_PUBLIC)


def signer(name, digest, *parts):
    """Signs with a digest of these parts, each a text or a function of the request."""

    def sign(request):
        request.put(name, digest("".join(part(request) if callable(part) else part for part in parts)))

    return sign


def field(name):
    return lambda request: request[name]


# Wannads.

wannads_sign = signer("signature", md5, field("subId"), field("transId"), field("reward"), SECRET)

wannads = network("wannads", sign=wannads_sign, source="3.22.177.178", applied="OK", duplicate="DUP")
credit = {
    "subId": "0042",
    "transId": "wn-90817263",
    "reward": "250.50",
    "status": "credited",
    "payout": "0.35",
    "offer_id": "5512",
    "offer_name": "Reach level 10 & win",
    "goal_id": "",
}
wannads.event("credit", credit, "credited")
wannads.event("credit-again", credit, "duplicate")
wannads.event("reversal", credit | {"reward": "-250.50", "payout": "-0.35", "status": "rejected"}, "reversed")
wannads.event("forged", credit | {"transId": "wn-90817264"}, "bad_signature", forge={"reward": "9250.50"})

migrated = network("wannads-migrated", sign=wannads_sign, source="3.22.177.178", applied="OK", duplicate="DUP")
credit |= {"subId": "0043", "transId": "wm-55500011", "status": "1"}
migrated.event("credit", credit, "credited")
migrated.event("credit-again", credit, "duplicate")
migrated.event("reversal", credit | {"status": "2"}, "reversed")
migrated.event("forged", credit | {"transId": "wm-55500012"}, "bad_signature", forge={"subId": "0044"})


# KiwiWall: neither the id nor the status is signed; the offer's name need not be UTF-8.

kiwiwall = network(
    "kiwiwall",
    sign=signer("signature", md5, field("sub_id"), ":", field("amount"), ":", SECRET),
    source="34.193.235.172",
    applied="1",
    bad_signature="0",
    bad_source="0",
    bad_parameters="0",
)
credit = {
    "status": "1",
    "trans_id": "kw-7781",
    "sub_id": "kiwi-007",
    "gross": "1.25",
    "amount": "1250.00",
    "offer_id": "310",
    "offer_name": Raw("Caf%E9%20%FF%20Quest"),
    "ip_address": "198.51.100.20",
}
kiwiwall.event("credit", credit, "credited")
kiwiwall.event("credit-again", credit, "duplicate")
kiwiwall.event("reversal", credit | {"status": "2", "amount": "-1250.00", "gross": "-1.25"}, "reversed")
kiwiwall.event("forged", credit | {"trans_id": "kw-7782"}, "bad_signature", forge={"amount": "91250.00"})


# PubScale: the value is cut to a whole number before it is hashed.

pubscale = network(
    "pubscale",
    sign=signer(
        "signature",
        md5,
        SECRET,
        ".",
        field("user_id"),
        ".",
        lambda request: request["value"].partition(".")[0],
        ".",
        field("token"),
    ),
    source="34.100.236.68",
    applied="OK",
)
credit = {
    "user_id": "ps-000123",
    "value": "100.99",
    "token": "3f1c9f60-4a0b-4b0e-9a55-0c8f1f6f2d11",
    "goal_name": "Install and open",
    "country": "IN",
}
pubscale.event("credit", credit, "credited")
pubscale.event("credit-again", credit, "duplicate")
pubscale.event("reversal", credit | {"status": "chargeback"}, "reversed")
forged = credit | {"token": "3f1c9f60-4a0b-4b0e-9a55-0c8f1f6f2d12"}
pubscale.event("forged", forged, "bad_signature", forge={"value": "101.99"})


# Without a signature: what is forged comes from elsewhere.

mmwall = network("mmwall", source="63.32.127.99", applied="OK")
credit = {
    "user_id": "mm-0815",
    "amount": "75",
    "payout": "0.15",
    "transaction_id": "mm-tx-20440",
    "offer_id": "88",
    "offer_name": "Daily quiz",
    "user_ip": "198.51.100.21",
}
mmwall.event("credit", credit, "credited")
mmwall.event("credit-again", credit, "duplicate")
mmwall.event("forged", credit | {"transaction_id": "mm-tx-20441"}, "bad_source", source=ADDRESS)

mychips = network("mychips", source="48.209.162.122", applied="OK")
credit = {
    "user_id": "chip-0099",
    "install_id": "6f0d2a7c9be84c51",
    "amount": "420",
    "payout": "0.42",
    "campaign_id": "cmp-17",
    "campaign_name": "Merge Kingdom (Android)",
    "event_name": "install",
}
later = {"install_id": "6f0d2a7c9be84c52", "amount": "0", "payout": "0", "event_name": "level_5"}
mychips.event("credit", credit, "credited")
mychips.event("credit-again", credit, "duplicate", source="168.63.37.145")
mychips.event("ignored", credit | later, "ignored")
mychips.event("forged", credit | {"install_id": "6f0d2a7c9be84c53"}, "bad_source", source=ADDRESS)

adtogame = network("adtogame", source="64.226.124.135", applied="ok")
credit = {
    "user_id": "atg-051",
    "transaction_id": "atg-660011",
    "points": "90.5",
    "payout": "0.09",
    "offer_id": "12",
    "offer_name": "Puzzle Town",
}
adtogame.event("credit", credit, "credited")
adtogame.event("credit-again", credit, "duplicate")
adtogame.event("reversal", credit | {"points": "-90.5", "payout": "-0.09"}, "reversed")
adtogame.event("forged", credit | {"transaction_id": "atg-660012"}, "bad_source", source=ADDRESS)


# TimeWall: of four types two move coins.

timewall = network(
    "timewall",
    sign=signer("hash", sha256, field("userID"), field("revenue"), SECRET),
    source="51.81.120.73",
    applied="ok",
)
credit = {
    "userID": "tw-000777",
    "transactionID": "TW-1a2b3c",
    "revenue": "0.7500",
    "currencyAmount": "750.00",
    "ip": "198.51.100.22",
    "type": "credit",
}
timewall.event("credit", credit, "credited")
timewall.event("credit-again", credit, "duplicate", source="142.111.248.18")
timewall.event("reversal", credit | {"type": "chargeback", "currencyAmount": "-750.00"}, "reversed")
timewall.event("pending", credit | {"type": "hold", "transactionID": "TW-1a2b3d"}, "pending")
timewall.event("ignored", credit | {"type": "hold_cancelled", "transactionID": "TW-1a2b3d"}, "ignored")
timewall.event("forged", credit | {"transactionID": "TW-1a2b3e"}, "bad_signature", forge={"revenue": "7500"})


# A token in the URL.


def token(name):
    return lambda request: request.put(name, SECRET)


cpalead = network("cpalead", sign=token("password"), source="34.69.179.33", applied="OK")
credit = {
    "subid": "lead-user-0012",
    "lead_id": "9b1f7d2e44",
    "virtual_currency": "300",
    "payout": "0.60",
    "campaign_id": "70412",
    "campaign_name": "Email Submit - US",
    "event_name": "",
}
cpalead.event("credit", credit, "credited")
cpalead.event("credit-again", credit, "duplicate")
forged = credit | {"lead_id": "9b1f7d2e45"}
cpalead.event("forged", forged, "bad_signature", forge={"password": "{password}"})

taskwall = network("taskwall", sign=token("password"), applied="OK")
credit = {
    "userid": "task-0031",
    "user_amount": "55",
    "offer_id": "2207",
    "offer_name": "Idle Farm - reach level 5",
    "payout": "0.11",
    "date": "2026-05-28",
}
taskwall.event("credit", credit, "credited")
taskwall.event("credit-again", credit, "duplicate")
# The next milestone of the same offer, on the same day and worth the same: it differs in the name only.
taskwall.event("credit-milestone", credit | {"offer_name": "Idle Farm - reach level 9"}, "credited")
forged = credit | {"offer_name": "Idle Farm - reach level 12"}
taskwall.event("forged", forged, "bad_signature", forge={"password": "local-guess!"})

upwall = network("upwall", sign=token("token"), applied="OK")
credit = {
    "userid": "up-0404",
    "transactionID": "UP-31337",
    "user_amount": "400",
    "offer_id": "19",
    "offer_name": "Signup + verify",
    "payout": "0.40",
}
upwall.event("credit", credit, "credited")
upwall.event("credit-again", credit, "duplicate")
upwall.event("reversal", credit | {"user_amount": "-400", "payout": "-0.40"}, "reversed")
upwall.event("forged", credit | {"transactionID": "UP-31338"}, "bad_signature", forge={"token": "SECRET"})

offermaru = network("offermaru", sign=token("secret"), applied="OK")
credit = {
    "user_id": "maru-0001",
    "user_reward": "120",
    "transaction_id": "om-5f0c",
    "offer_name": "오퍼 마루",
}
offermaru.event("credit", credit, "credited")
offermaru.event("credit-again", credit, "duplicate")
offermaru.event("forged", credit | {"transaction_id": "om-5f0d"}, "bad_signature", forge={"secret": "undefined"})


# Without an id of a conversion, and signed in part.

personaly = network(
    "personaly",
    sign=signer("pub_signature", md5, field("user_id"), ":local-publisher:", SECRET),
    source="52.200.142.249",
    applied="1",
    bad_signature="0",
    bad_source="0",
    bad_parameters="0",
)
credit = {
    "user_id": "anna@example.com",
    "amount": "40",
    "payout": "0.08",
    "offer_id": "po-611",
    "offer_name": "Castle Siege",
    "app_id": "a1b2c3",
}
personaly.event("credit", credit, "credited")
personaly.event("credit-again", credit, "duplicate", source="159.203.84.146")
personaly.event("reversal", credit | {"amount": "-40", "payout": "-0.08"}, "reversed")
personaly.event("forged", credit | {"offer_id": "po-612"}, "bad_signature", forge={"user_id": "eve@example.com"})

offerdaddy = network(
    "offerdaddy",
    sign=signer("signature", md5, field("transaction_id"), "/", field("offer_id"), "/", SECRET),
    applied="1",
    bad_signature="0",
    bad_source="0",
    bad_parameters="0",
)
credit = {
    "transaction_id": "od 100%25 7",
    "offer_id": "4711",
    "amount": "15.5",
    "userid": "daddy-0005",
    "payout": "0.03",
}
offerdaddy.event("credit", credit, "credited")
offerdaddy.event("credit-again", credit, "duplicate")
offerdaddy.event("forged", credit, "bad_signature", forge={"transaction_id": "od 100%25 8"})

playtimeads = network(
    "playtimeads",
    sign=signer("signature", sha1, field("user_id"), field("offer_id"), field("task_id"), "local-app", SECRET),
    applied="ok",
)
credit = {
    "user_id": "pta-00210",
    "offer_id": "901",
    "offer_name": "Word Hunt",
    "payout": "0.05",
    "amount": "50",
    "task_name": "Play 10 minutes",
    "task_id": "t3",
}
playtimeads.event("credit", credit, "credited")
playtimeads.event("credit-again", credit, "duplicate")
playtimeads.event("forged", credit, "bad_signature", forge={"task_id": "t4"})


# GemiAd and VortexWall: one formula, other macros.


def gemi(name, user, txid, source):
    sign = signer("hash", sha256, field("user_id"), field("offer_id"), field("txid"), SECRET)
    made = network(name, sign=sign, source=source, applied="Approved")
    credit = {
        "user_id": user,
        "offer_id": "c-3001",
        "offer_name": "Bingo Days",
        "event_id": "2",
        "event_name": "Level 20",
        "payout": "1.10",
        "reward": "1100.00",
        "txid": txid,
        "status": "completed",
    }
    made.event("credit", credit, "credited")
    made.event("credit-again", credit, "duplicate")
    made.event("reversal", credit | {"payout": "-1.10", "reward": "-1100.00", "status": "rejected"}, "reversed")
    made.event("test", credit | {"user_id": f"TEST_{user}", "txid": f"{txid}-test"}, "test")
    made.event("forged", credit | {"txid": f"{txid}-2"}, "bad_signature", forge={"user_id": f"{user}1"})


gemi("gemiad", "gemi-0060", "GX77120", "64.226.92.208")
gemi("vortexwall", "vortex-0061", "VX10552", ADDRESS)


# adjoe: what is not sent counts as nothing.

adjoe = network(
    "adjoe",
    sign=signer(
        "sid",
        sha1,
        field("trans_uuid"),
        field("user_uuid"),
        field("currency"),
        field("coin_amount"),
        lambda request: request.get("device_id", ""),
        lambda request: request.get("sdk_app_id", ""),
        SECRET,
    ),
    applied="OK",
)
credit = {
    "user_uuid": "adj-000088",
    "trans_uuid": "c9b1c1c8-54f3-4c5e-8d43-5f2b0e6d7a10",
    "coin_amount": "12",
    "currency": "Gold Coins",
    "sdk_app_id": "",
    "app_id": "com.example.merge",
    "app_name": "Merge & Match",
    "reward_level": "3",
    "publisher_sub_id1": "",
}
adjoe.event("credit", credit, "credited")
adjoe.event("credit-again", credit, "duplicate")
full = {
    "trans_uuid": "c9b1c1c8-54f3-4c5e-8d43-5f2b0e6d7a11",
    "device_id": "5d0c6f0e-9c38-4a5f-bb0c-3f6f2a1d9e77",
    "sdk_app_id": "com.example.rewards",
}
adjoe.event("credit-device", credit | full, "credited")
forged = credit | {"trans_uuid": "c9b1c1c8-54f3-4c5e-8d43-5f2b0e6d7a12"}
adjoe.event("forged", forged, "bad_signature", forge={"coin_amount": "1200"})


# AdsPenny: `reward` is dollars.

adspenny = network(
    "adspenny",
    sign=signer("signature", sha256, field("amount"), field("trans_id"), SECRET),
    applied="OK",
)
credit = {
    "user_id": "penny-0017",
    "task_id": "614",
    "task_title": "Follow & like",
    "task_type": "social",
    "ip_address": "198.51.100.23",
    "amount": "25.0",
    "reward": "0.025",
    "trans_id": "ap-000981",
    "status": "1",
}
adspenny.event("credit", credit, "credited")
adspenny.event("credit-again", credit, "duplicate")
adspenny.event("reversal", credit | {"status": "2"}, "reversed")
adspenny.event("forged", credit | {"trans_id": "ap-000982"}, "bad_signature", forge={"amount": "925.0"})


# The family of one script that was sold many times: RadientWall and the rest.


FAMILY = ("subId", "transId", "reward", "signature")


def family(name, user, *, carrier="query", source=ADDRESS, names=FAMILY, more=None):
    user_id, trans_id, reward, signature = names
    sign = signer(signature, md5, field(user_id), field(trans_id), field(reward), SECRET)
    made = network(name, carrier=carrier, sign=sign, source=source, applied="OK", duplicate="DUP")
    conversion = sha256(name)[:20]
    credit = {
        user_id: user,
        trans_id: f"{conversion}-1",
        reward: "25.0",
        "payout": "0.05",
        "status": "1",
        "userIp": "198.51.100.24",
        "campaign_id": "1180",
        "offer_name": "Spin & Win",
        "country": "DE",
        "uuid": "",
    } | (more or {})
    made.event("credit", credit, "credited")
    made.event("credit-again", credit, "duplicate")
    made.event("reversal", credit | {"status": "2"}, "reversed")
    made.event("test", credit | {trans_id: f"{conversion}-2", "debug": "1"}, "test")
    made.event("forged", credit | {trans_id: f"{conversion}-3"}, "bad_signature", forge={reward: "925.0"})


family("radientwall", "f-0101")
family("ewall", "f-0102", carrier="form")
family("dermoney", "f-0103")
family("primewall", "f-0104")
family("dripoffers", "f-0105", carrier="form", source="89.116.149.103")
family("offerwallmedia", "f-0106", carrier="form")
family("offerwall-me", "f-0107", carrier="form")
family("proearnwall", "f-0108")
family("adrevmedia", "f-0109")
family("adwallx", "f-0110")
family("adstringer", "f-0111")
family("easywall", "f-0112")
family("offer4ads", "f-0113")
family("objectivewall", "f-0114")
family("adjoemedia", "f-0115")
family("adparagon", "f-0116")
family("tplayad", "f-0117")
family("adswedmedia", "f-0118", more={"reward": "25.4", "round_reward": "25"})
family("revtoo", "f-0119", carrier="form", source="195.35.39.220")
family("revlum", "f-0120", carrier="form")
family("king-wall", "f-0121", names=("subId", "transId", "rewards", "signature"))
family("excentiv", "f-0122", names=("userid", "transactionid", "reward", "secret"))
family("kiddywall", "f-0123", names=("userid", "transactionid", "reward", "secret"))


# AppLovin MAX: all values by name, decoded, and the key.


def applovin_sign(request):
    values = (value for _, value in sorted(request.items()))
    request.put("token", sha256("".join(values) + SECRET))


applovin = network("applovin", sign=applovin_sign, applied="OK")
credit = {
    "user_id": "max-0064",
    "event_id": "a3f09d6c51e84b1f9a7d",
    "amount": "10",
    "currency": "Gold Coins",
}
applovin.event("credit", credit, "credited")
applovin.event("credit-again", credit, "duplicate")
applovin.event("forged", credit | {"event_id": "a3f09d6c51e84b1f9a7e"}, "bad_signature", forge={"amount": "1000"})


# AdMob: the decoded query up to the signature.


def admob_sign(request):
    message = urllib.parse.unquote(request.query).encode()
    signature = ecdsa_sign(ADMOB_KEY, message)
    assert ecdsa_verifies(ADMOB_PUBLIC, message, signature)
    request.put("signature", base64url_text(der(signature)))
    request.put("key_id", ADMOB_KEY_ID)


admob = network("admob", sign=admob_sign, agent="Google-AdMob-Reward-Verification", applied="OK")
credit = {
    "ad_network": "5450213213286189855",
    "ad_unit": "2747237135",
    "reward_amount": "5",
    "reward_item": "Key Doubler",
    "timestamp": "1780000000123",
    "transaction_id": "18fa792de1bca816048293fc71035638",
    "user_id": "mob-000512",
}
admob.event("credit", credit, "credited")
admob.event("credit-again", credit, "duplicate")
tried = {"ad_network": "5450213213286189855", "ad_unit": "1234567890", "timestamp": "1780000120456"}
admob.event("test", tried | {"transaction_id": "123456789"}, "test")
forged = credit | {"transaction_id": "18fa792de1bca816048293fc71035639"}
admob.event("forged", forged, "bad_signature", forge={"reward_amount": "5000"})
