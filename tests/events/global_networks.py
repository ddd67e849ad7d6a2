"""The stories of the networks that everybody meets: the large offer walls, the survey networks, and the ad
mediators' walls.

Each formula is that network's own, written here once more by hand. It must never be read from, or fitted to, the
presets or the program: where the two differ, one of them is wrong, and that is what the events are for.
"""

from wire import (
    SECRET,
    Raw,
    base64_text,
    base64url_text,
    hmac_bytes,
    hmac_hex,
    md5,
    network,
    php,
    sha1,
    sha256,
)

ELSEWHERE = "198.51.100.99"


def without(fields, *names):
    return {name: value for name, value in fields.items() if name not in names}


# AdGate: no signature; a token in the URL and the sender's address.


def adgate():
    def sign(request):
        request.put("token", SECRET)

    it = network("adgate", sign=sign, source="3.135.140.42", applied="OK")
    credit = {
        "user_id": "0017",
        "trans_id": "5f0c7a1e9b",
        "amount": "662.6500",
        "payout": "0.50",
        "offer_id": "81234",
        "offer_name": "Coin Master: reach village 5",
        "state": "approved",
    }
    it.event("credit", credit, "credited")
    it.event("credit-again", credit, "duplicate")
    it.event("reversal", credit | {"state": "rejected", "amount": "-662.6500", "payout": "-0.50"}, "reversed")
    later = credit | {"trans_id": "5f0c7a1e9c", "offer_name": "Survey & more", "amount": "80", "payout": "0.06"}
    it.event("pending", later | {"state": "pending"}, "pending")
    it.event("pending-approved", later, "credited")
    it.event("ignored", credit | {"trans_id": "5f0c7a1e9d", "event_id": "installed", "payout": "0.00"}, "ignored")
    fresh = credit | {"trans_id": "5f0c7a1e9e"}
    it.event("elsewhere", fresh, "bad_source", source=ELSEWHERE)
    it.event("forged", fresh, "bad_signature", forge={"token": "guessed-secret"})


# AdGem: HMAC-SHA256 over the whole URL without `verifier`, or over the body.


def adgem():
    def sign(request):
        request.put("verifier", hmac_hex("sha256", request.url))

    it = network("adgem", sign=sign, source="18.191.5.158", applied="OK")
    credit = {
        "amount": "1250",
        "campaign_id": "3311",
        "goal_id": "77",
        "goal_name": "",
        "offer_name": "A B (x)*~ 100%",
        "payout": "1.25",
        "player_id": "00123",
        "transaction_id": "6b0f3a52-4f3e-4c38-9a0b-3d1d6c1f0a01",
        "request_id": "0d5b8a2e-6c54-4f0e-8f6f-0f5f4b9c1a01",
    }
    it.event("credit", credit, "credited")
    it.event("credit-again", credit | {"request_id": "0d5b8a2e-6c54-4f0e-8f6f-0f5f4b9c1a02"}, "duplicate")
    install = credit | {
        "amount": "",
        "payout": "0",
        "transaction_id": "6b0f3a52-4f3e-4c38-9a0b-3d1d6c1f0a02",
        "nonpayable_install_goal": "true",
        "request_id": "0d5b8a2e-6c54-4f0e-8f6f-0f5f4b9c1a03",
    }
    it.event("ignored", install, "ignored")
    fresh = credit | {
        "transaction_id": "6b0f3a52-4f3e-4c38-9a0b-3d1d6c1f0a03",
        "request_id": "0d5b8a2e-6c54-4f0e-8f6f-0f5f4b9c1a04",
    }
    it.event("forged", fresh, "bad_signature", forge={"amount": "125000"})


def adgem_v3():
    def sign(request):
        request.header("Signature", hmac_hex("sha256", request.body))

    it = network("adgem-v3", carrier="json", sign=sign, source="18.191.5.158", applied="OK")
    data = {
        "player_id": "00124",
        "transaction_id": "a3c1e2d4-9f7b-4a5d-8a43-6d1f0b7c2b01",
        "conversion_id": "c-900001",
        "conversion_type": "reward",
        "amount": Raw("662.6500"),
        "payout": Raw("0.66"),
        "campaign_id": Raw("3312"),
        "offer_name": 'Réveil "Deluxe" / niveau 5',
        "goal_id": Raw("78"),
        "goal_name": None,
        "all_goals_completed": False,
        "ip": "198.51.100.24",
        "country": "FR",
    }

    def sent(data, attempt):
        request_id = f"1e6c9b3f-7d65-4a1f-9a7a-1a6a5cad2b0{attempt}"
        return {"request_id": request_id, "timestamp": 1780000000 + attempt, "data": data}

    it.event("credit", sent(data, 1), "credited")
    it.event("credit-again", sent(data, 2), "duplicate")
    install = data | {
        "transaction_id": "a3c1e2d4-9f7b-4a5d-8a43-6d1f0b7c2b02",
        "conversion_id": "c-900002",
        "conversion_type": "install",
        "amount": 0,
        "payout": 0,
    }
    it.event("ignored", sent(install, 3), "ignored")
    fresh = data | {"transaction_id": "a3c1e2d4-9f7b-4a5d-8a43-6d1f0b7c2b03", "conversion_id": "c-900003"}
    it.event("forged", sent(fresh, 4), "bad_signature", forge={"data.amount": Raw("66265.00")})


# ayeT: HMAC-SHA256 over all parameters, sorted by name and encoded again as PHP does; the wire has %20 where that
# has +.


def ayet():
    def sign(request):
        rebuilt = "&".join(f"{php(name)}={php(value)}" for name, value in sorted(request.items()))
        request.header("X-Ayetstudios-Security-Hash", hmac_hex("sha256", rebuilt))

    it = network("ayet", sign=sign, source="35.165.166.40", applied="OK")
    credit = {
        "network": "ayetstudios",
        "user_id": "user+42@example.com",
        "trans_id": "64d1f0a9c3",
        "amount": "120.5",
        "payout": "0.1205",
        "offer_id": "204411",
        "offer_name": "Dragon Saga~ *Level (10)*",
        "goal_id": "b7c0",
        "sub_id": "",
        "ip": "0.0.0.0",
        "callback_type": "conversion",
        "is_chargeback": "0",
    }
    it.event("credit", credit, "credited")
    it.event("credit-again", credit, "duplicate")
    back = credit | {
        "trans_id": "r-64d1f0a9c3",
        "amount": "-120.5",
        "payout": "-0.1205",
        "callback_type": "chargeback",
        "is_chargeback": "1",
    }
    it.event("reversal", back, "reversed")
    nothing = {"amount": "0", "payout": "0"}
    it.event("ignored", credit | nothing | {"trans_id": "64d1f0a9c4", "callback_type": "installation"}, "ignored")
    it.event("forged", credit | {"trans_id": "64d1f0a9c5"}, "bad_signature", forge={"network": "somebody"})


# BitLabs: HMAC-SHA1 over the whole URL up to `&hash=`.


def bitlabs_sign(request):
    request.put("hash", hmac_hex("sha1", request.url))


# The published example, so that the formula above is not only ours.
assert (
    hmac_hex(
        "sha1",
        "https://publisher.com/complete?uid=8cc877ee-af19-488d-b28d-216fb866b996&val=500",
        "JLOIAUNMHFli7ZJOQVEzm98rzqnm9",
    )
    == "dbcd6bb8ca677344592842a52b4fca9bec36cd4b"
)


def bitlabs():
    it = network("bitlabs", sign=bitlabs_sign, source="20.76.54.45", applied="OK")
    credit = {
        "user_id": "8cc877ee-af19-488d-b28d-216fb866b996",
        "trans_id": "o7712345",
        "amount": "500",
        "payout": "0.50",
        "type": "COMPLETE",
        "ref": "",
        "offer_id": "9912",
        "offer_name": "Raid: Shadow Legends",
        "goal_id": "31",
        "s4": "campaign b",
    }
    it.event("credit", credit, "credited")
    it.event("credit-again", credit, "duplicate")
    back = {"type": "RECONCILIATION", "amount": "-500", "payout": "-0.50"}
    it.event("reversal", credit | back | {"trans_id": "or7712345", "ref": "o7712345"}, "reversed")
    survey = without(credit, "ref", "offer_id", "offer_name", "goal_id") | {"trans_id": "f3b1c2", "amount": "41.5"}
    it.event("screenout", survey | {"type": "SCREENOUT", "amount": "2", "payout": "0.002"}, "credited")
    it.event("ignored", survey | {"trans_id": "f3b1c3", "type": "START_BONUS", "payout": "0"}, "ignored")
    fresh = credit | {"trans_id": "o7712346"}
    it.event("forged", fresh, "bad_signature", forge={"s4": "campaign a"})


def bitlabs_stateful():
    it = network("bitlabs-stateful", sign=bitlabs_sign, source="18.199.243.90", applied="OK")
    credit = {
        "user_id": "3d2a55aa-0b6f-4d0f-8e0a-5f6f2f9f7c10",
        "trans_id": "o8800001",
        "amount": "1200",
        "payout": "1.20",
        "state": "COMPLETED",
        "offer_id": "9913",
        "offer_name": "Groceries receipt",
        "goal_id": "",
    }
    it.event("pending", credit | {"state": "PENDING"}, "pending")
    it.event("credit", credit, "credited")
    it.event("credit-again", credit, "duplicate")
    it.event("reversal", credit | {"state": "RECONCILIATION"}, "reversed")
    fresh = credit | {"trans_id": "o8800002", "state": "PENDING"}
    it.event("forged", fresh, "bad_signature", forge={"state": "COMPLETED"})


# CPX: MD5 over the transaction and the secret.


def cpx():
    def sign(request):
        request.put("hash", md5(request["trans_id"] + "-" + SECRET))

    it = network("cpx", sign=sign, source="2a01:4f8:d0a:30ff::2", applied="1")
    credit = {
        "status": "1",
        "trans_id": "88312345",
        "user_id": "007",
        "amount": "662.6500",
        "payout": "0.50",
        "offer_id": "41233",
        "type": "complete",
    }
    it.event("credit", credit, "credited")
    it.event("credit-again", credit, "duplicate")
    it.event("reversal", credit | {"status": "-2"}, "reversed")
    second = credit | {"trans_id": "88312346", "amount": "100.0000", "payout": "0.08"}
    it.event("credit-second", second, "credited")
    it.event("reversal-second", second | {"status": "2"}, "reversed")
    left = {"trans_id": "88312347", "amount": "1.0000", "payout": "0.00"}
    it.event("ignored", credit | left | {"type": "out"}, "ignored")
    it.event("ignored-bonus", credit | left | {"trans_id": "88312348", "type": "bonus"}, "ignored")
    fresh = credit | {"trans_id": "88312349"}
    it.event("forged", fresh, "bad_signature", forge={"trans_id": "88312350"})


# Lootably: SHA-256 over the texts as sent.


def lootably():
    def sign(request):
        signed = request["user_id"] + request["ip"] + request["revenue"] + request["amount"] + SECRET
        request.put("hash", sha256(signed))

    it = network("lootably", sign=sign, applied="1")
    credit = {
        "user_id": "lb-0042",
        "trans_id": "tx_0f9e8d7c",
        "ip": "198.51.100.23",
        "revenue": "0.5000",
        "amount": "100.00",
        "offer_id": "o-55",
        "offer_name": "Bingo & Blitz",
        "goal_id": "",
        "status": "1",
    }
    it.event("credit", credit, "credited")
    it.event("credit-again", credit, "duplicate")
    it.event("reversal", credit | {"status": "0"}, "reversed")
    it.event("forged", credit | {"trans_id": "tx_0f9e8d7d"}, "bad_signature", forge={"amount": "100.0"})


# Monlix: the secret itself.


def monlix():
    def sign(request):
        request.put("secret", SECRET)

    it = network("monlix", sign=sign, applied="OK")
    credit = {
        "user_id": "mx-0042",
        "trans_id": "9a7b6c5d",
        "amount": "25",
        "payout": "0.025",
        "offer_name": "Sign up, then play",
        "status": "1",
    }
    it.event("credit", credit, "credited")
    it.event("credit-again", credit, "duplicate")
    it.event("reversal", credit | {"status": "2"}, "reversed")
    it.event("forged", credit | {"trans_id": "9a7b6c5e"}, "bad_signature", forge={"secret": "local-secret2"})


# Notik: HMAC-SHA1 over the whole URL up to `&hash=`; spaces are + there.


def notik():
    def sign(request):
        request.put("hash", hmac_hex("sha1", request.url))

    it = network("notik", sign=sign, encode=php, source="192.53.121.112", applied="1")
    credit = {
        "pub_id": "p1",
        "app_id": "a1",
        "user_id": "nk 0042",
        "s1": "",
        "amount": "250.75",
        "payout": "0.25",
        "offer_id": "7001",
        "offer_name": "Spin & Win (EU)",
        "currency_name": "Coins",
        "timestamp": "1780000000",
        "txn_id": "nk-1001",
        "conversion_ip": "0.0.0.0",
        "rewarded_txn_id": "",
        "event_id": "3",
        "event_name": "Level 3",
    }
    it.event("credit", credit, "credited")
    it.event("credit-again", credit | {"timestamp": "1780000300"}, "duplicate")
    back = {"txn_id": "nk-1002", "rewarded_txn_id": "nk-1001", "amount": "-260.10", "payout": "-0.25"}
    it.event("reversal", credit | back, "reversed")
    # The same text in other bytes.
    encoded = {"offer_name": Raw("Spin%20%26%20Win%20%28EU%29")}
    it.event("forged", credit | {"txn_id": "nk-1003"}, "bad_signature", forge=encoded)


# Torox: MD5 over the offer, the user and the key.


def torox():
    def sign(request):
        request.put("sig", md5(request["oid"] + "-" + request["user_id"] + "-" + SECRET))

    it = network("torox", sign=sign, source="54.175.173.245", applied="1")
    credit = {
        "id": "30012345",
        "oid": "20333",
        "amount": "350",
        "currency_name": "Coins",
        "user_id": "tx-0042",
        "payout": "0.35",
        "o_name": "Empires - Town Hall 12",
    }
    it.event("credit", credit, "credited")
    it.event("credit-again", credit, "duplicate")
    it.event("reversal", credit | {"amount": "-350", "payout": "-0.35"}, "reversed")
    fresh = credit | {"id": "30012346"}
    it.event("elsewhere", fresh, "bad_source", source=ELSEWHERE)
    it.event("forged", fresh, "bad_signature", forge={"user_id": "tx-0043"})


# TheoremReach: HMAC-SHA1 over the URL without `hash`, in base64url without padding.


def theoremreach():
    def sign(request):
        request.put("hash", base64url_text(hmac_bytes("sha1", request.url)))

    it = network("theoremreach", sign=sign, applied="OK")
    credit = {
        "user_id": "tr-0042",
        "reward": "75",
        "currency": "0.75",
        "tx_id": "b1f0c2d3-55aa-4c1e-9d0e-0a0b0c0d0e01",
        "reversal": "false",
        "debug": "false",
        "transaction_id": "",
        "screenout": "2",
        "profiler": "2",
        "offer_id": "12",
        "offer_name": "Health survey",
    }
    it.event("credit", credit, "credited")
    it.event("credit-again", credit, "duplicate")
    it.event("reversal", credit | {"reversal": "true", "reward": "-75", "currency": "-0.75"}, "reversed")
    # The dashboard's test, with a macro that nobody replaced.
    it.event("test", credit | {"debug": "true", "currency": "{currency}", "tx_id": "test"}, "test")
    fresh = credit | {"tx_id": "b1f0c2d3-55aa-4c1e-9d0e-0a0b0c0d0e02"}
    it.event("ignored", fresh | {"screenout": "1", "reward": "1", "currency": "0.01"}, "ignored")
    it.event("forged", fresh | {"debug": "true"}, "bad_signature", forge={"debug": "false"})


# inBrain: MD5 over two fields of the body.


def inbrain():
    def sign(request):
        request.put("Sig", md5(request["PanelistId"] + request["RewardId"] + SECRET))

    it = network("inbrain", carrier="json", sign=sign, applied="OK")
    credit = {
        "PanelistId": "0042@example.com",
        "RewardId": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
        "Reward": Raw("12.50"),
        "RevenueAmount": Raw("0.125"),
        "RewardType": "survey_completed",
        "SessionId": "",
        "IsTest": False,
    }
    it.event("credit", credit, "credited")
    it.event("credit-again", credit, "duplicate")
    offer = without(credit, "IsTest") | {
        "RewardId": "3f2504e0-4f89-41d3-9a0c-0305e82c3302",
        "RewardType": "offer_completed",
        "Reward": Raw("900.0"),
        "RevenueAmount": Raw("9.0"),
        "OfferId": "4410",
        "OfferGoalId": "2",
        "OfferTitle": "Épique: « Saga »",
        "ClientId": "c1",
        "Timestamp": "2026-05-28T20:27:00Z",
    }
    it.event("credit-offer", offer, "credited")
    back = {"RewardType": "offer_completion_reversed", "Timestamp": "2026-06-28T09:00:00Z"}
    it.event("reversal", offer | back, "reversed")
    it.event("test", credit | {"RewardId": "3f2504e0-4f89-41d3-9a0c-0305e82c3303", "IsTest": True}, "test")
    clicked = {"RewardId": "3f2504e0-4f89-41d3-9a0c-0305e82c3304", "RewardType": "offer_clicked"}
    it.event("ignored", offer | clicked | {"Reward": 0, "RevenueAmount": 0}, "ignored")
    out = {"RewardId": "3f2504e0-4f89-41d3-9a0c-0305e82c3305", "RewardType": "survey_disqualified"}
    it.event("ignored-disqualified", credit | out | {"Reward": Raw("0.0")}, "ignored")
    it.event("credit-disqualified", credit | out | {"Reward": Raw("0.5"), "RevenueAmount": Raw("0.01")}, "credited")
    fresh = credit | {"RewardId": "3f2504e0-4f89-41d3-9a0c-0305e82c3306"}
    it.event("forged", fresh, "bad_signature", forge={"RewardId": "3f2504e0-4f89-41d3-9a0c-0305e82c3307"})


# Pollfish: HMAC-SHA1 over the macros' values, sorted by the macros' names, in base64 with padding.

POLLFISH_MACROS = (
    "click_id cpa device_id request_uuid reward_name reward_value status term_reason timestamp tx_id".split()
)


def pollfish_message(values):
    return ":".join(
        values[name] for name in POLLFISH_MACROS if name in values and not (name == "request_uuid" and not values[name])
    )


# The published example, of which the secret is not known: at least the text that is signed.
assert (
    pollfish_message(
        {
            "device_id": "my-device-id",
            "cpa": "30",
            "timestamp": "1463152452308",
            "tx_id": "08f31d41d800cc7a0beb7eb4897639a8ba7fd7db",
        }
    )
    == "30:my-device-id:1463152452308:08f31d41d800cc7a0beb7eb4897639a8ba7fd7db"
)


def pollfish():
    def sign(request):
        request.put("signature", base64_text(hmac_bytes("sha1", pollfish_message(dict(request.items())))))

    def sign_debug(request):
        """Developer mode appends `debug` after the rest, unsigned."""
        sign(request)
        request.put("debug", "true")

    it = network("pollfish", sign=sign, applied="OK")
    credit = {
        "request_uuid": "0077",
        "tx_id": "08f31d41d800cc7a0beb7eb4897639a8ba7fd7db",
        "reward_value": "30",
        "reward_name": "Gold & Silver",
        "cpa": "30",
        "status": "eligible",
        "term_reason": "",
        "timestamp": "1780000000151",  # at which the signature has + and /
    }
    it.event("credit", credit, "credited")
    it.event("credit-again", credit, "duplicate")
    out = {"tx_id": "18f31d41d800cc7a0beb7eb4897639a8ba7fd7db", "status": "noteligible", "term_reason": "quota_full"}
    it.event("ignored", credit | out | {"timestamp": "1780000060000"}, "ignored")
    questions = {"tx_id": "28f31d41d800cc7a0beb7eb4897639a8ba7fd7db", "cpa": "0", "timestamp": "1780000120000"}
    it.event("ignored-demographic", credit | questions, "ignored")
    fresh = credit | {"tx_id": "38f31d41d800cc7a0beb7eb4897639a8ba7fd7db", "timestamp": "1780000180000"}
    it.event("test", fresh, "test", sign=sign_debug)
    fresh = credit | {"tx_id": "48f31d41d800cc7a0beb7eb4897639a8ba7fd7db", "timestamp": "1780000240000"}
    it.event("forged", fresh, "bad_signature", forge={"reward_value": "3000"})


# Tapjoy: MD5 over id, user, coins and the currency's key.


def tapjoy():
    def sign(request):
        request.put("verifier", md5(":".join((request["id"], request["snuid"], request["currency"], SECRET))))

    it = network("tapjoy", sign=sign, applied="OK")
    credit = {
        "snuid": "001234",
        "currency": "55",
        "mac_address": "",
        "display_multiplier": "1.0",
        "id": "5a1c9e0e-77aa-4b0e-b0b2-1d2e3f405061",
    }
    it.event("credit", credit, "credited")
    it.event("credit-again", credit, "duplicate")
    # Another user, although the same number.
    it.event("credit-no-zeros", credit | {"snuid": "1234", "id": "5a1c9e0e-77aa-4b0e-b0b2-1d2e3f405062"}, "credited")
    it.event("ignored", credit | {"snuid": "undefined", "id": "5a1c9e0e-77aa-4b0e-b0b2-1d2e3f405063"}, "ignored")
    fresh = credit | {"id": "5a1c9e0e-77aa-4b0e-b0b2-1d2e3f405064"}
    it.event("forged", fresh, "bad_signature", forge={"snuid": "01234"})


# ironSource: MD5 over time, event, user and coins, decoded; answered with the event's id.


def ironsource():
    def sign(request):
        signed = request["timestamp"] + request["eventId"] + request["userId"] + request["rewards"] + SECRET
        request.put("signature", md5(signed))

    it = network("ironsource", sign=sign, source="34.194.180.125", applied=lambda request: request["eventId"] + ":OK")
    credit = {
        "userId": "123@abc.com",
        "eventId": "f1c4a3b2e0d9",
        "rewards": "40",
        "timestamp": "202605282026",
    }
    it.event("credit", credit, "credited")
    it.event("credit-again", credit | {"timestamp": "202605282131"}, "duplicate")
    it.event("reversal", credit | {"negativeCallback": "true", "timestamp": "202606102026"}, "reversed")
    it.event("forged", credit | {"eventId": "f1c4a3b2e0da"}, "bad_signature", forge={"rewards": "4000"})


# Fyber: SHA-1, the token first.


def fyber():
    def sign(request):
        extra = "".join(request.get(f"pub{number}", "") for number in range(10))
        request.put("sid", sha1(SECRET + request["uid"] + request["amount"] + request["_trans_id_"] + extra))

    it = network("fyber", sign=sign, source="146.0.239.9", applied="OK")
    credit = {
        "amount": "900",
        "uid": "fy-0042",
        "_trans_id_": "9d5c1a54-4a70-4d34-8a11-1f60a7b6c801",
        "currency_name": "Coins",
        "currency_id": "coins",
        "pub1": "level 7",
        "pub0": "",
        "offer_title": "Idle Miner – reach mine 3",
        "payout_net": "0.90",
        "lpid": "61233",
    }
    it.event("credit", credit, "credited")
    it.event("credit-again", credit, "duplicate")
    # No pubN at all.
    plain = without(credit, "pub0", "pub1") | {"_trans_id_": "9d5c1a54-4a70-4d34-8a11-1f60a7b6c802", "amount": "1"}
    it.event("credit-plain", plain, "credited")
    fresh = credit | {"_trans_id_": "9d5c1a54-4a70-4d34-8a11-1f60a7b6c803"}
    it.event("forged", fresh, "bad_signature", forge={"pub1": "level 8"})


# Adscend: HMAC-MD5 over the query without `hash`.


def adscend():
    def sign(request):
        request.put("hash", hmac_hex("md5", request.query))

    it = network("adscend", sign=sign, source="104.130.60.109", applied="OK")
    credit = {
        "trans_id": "ad-700100",
        "user_id": "as-0042",
        "amount": "130",
        "payout": "0.13",
        "offer_id": "5512",
        "offer_name": "Free trial: 7 days",
        "goal_id": "",
    }
    it.event("credit", credit, "credited")
    it.event("credit-again", credit, "duplicate")
    it.event("reversal", credit | {"amount": "-130", "payout": "-0.13"}, "reversed")
    it.event("forged", credit | {"trans_id": "ad-700101"}, "bad_signature", forge={"amount": "1300"})


for tell in (
    adgate,
    adgem,
    adgem_v3,
    ayet,
    bitlabs,
    bitlabs_stateful,
    cpx,
    lootably,
    monlix,
    notik,
    torox,
    theoremreach,
    inbrain,
    pollfish,
    tapjoy,
    ironsource,
    fyber,
    adscend,
):
    tell()
