"""The events of game aggregators: a player's money moves, calls repeat, and come in the wrong order.

It must never read the presets, the program or its tests. The player 0042 begins with an account of 100.00; the answers
are counted here, in whole hundredths.
"""

from wire import hmac_hex, network, Raw


def sign(request):
    request.header("X-Signature", hmac_hex("sha256", request.body))


def decimal(hundredths):
    return f"{hundredths // 100}.{hundredths % 100:02}"


class Player:
    """One player's calls, and the balance that they must lead to."""

    def __init__(self, aggregator, name, hundredths):
        self.aggregator, self.name, self.hundredths = aggregator, name, hundredths

    def moved(self, key, change):
        before = self.hundredths
        self.hundredths += change
        return (
            200,
            f'{{"transaction_id":"{self.aggregator.name}/{key}","balance_before":{decimal(before)},'
            f'"balance_after":{decimal(self.hundredths)},"status":"SUCCESS"}}',
        )

    def call(self, step, path, fields, outcome, answer, **more):
        self.aggregator.event(step, fields | {"player_id": self.name}, outcome, path=path, answer=answer, **more)


flip = network("19flip", contract="wallet", carrier="json", sign=sign, agent="game-aggregator/1.0")
player = Player(flip, "0042", 10_000)

flip.event("ping", {}, "ping", path="/ping", answer=(200, '{"status":"SUCCESS"}'))
player.call("balance", "/balance", {}, "balance", (200, '{"balance":100.00,"currency":"coins"}'))

bet = {"idempotency_key": "bet-1", "amount": Raw("12.50"), "round_id": Raw("7001"), "game_id": ""}
heard = player.moved("bet-1", -1250)
player.call("bet", "/bet/debit", bet, "bet", heard)
player.call("bet-again", "/bet/debit", bet, "duplicate", heard)
# Staff send it again: the round as a string, the game filled in.
player.call("bet-by-staff", "/bet/debit", bet | {"round_id": "7001", "game_id": "flip-jet"}, "duplicate", heard)
player.call("bet-conflict", "/bet/debit", bet | {"amount": Raw("99")}, "conflict", heard)

win = {"idempotency_key": "win-1", "amount": "20.25", "round_id": "7001", "game_id": "flip-jet"}
won = player.moved("win-1", 2025)
player.call("win", "/win/credit", win, "won", won)
player.call("win-again", "/win/credit", win, "duplicate", won)

taken_back = player.moved("win-rb-1", -2025)
rollback = {"idempotency_key": "win-rb-1", "original_transaction_id": "19flip/win-1"}
player.call("win-rollback", "/win/rollback", rollback, "rolled_back", taken_back)

# By the key, since our id was never received; and once more under another key.
manual = {"idempotency_key": "manual-rb-1", "original_transaction_id": "bet-1"}
given_back = player.moved("manual-rb-1", 1250)
player.call("bet-rollback", "/bet/rollback", manual, "rolled_back", given_back)
second = manual | {"idempotency_key": "manual-rb-2"}
player.call("bet-rollback-second", "/bet/rollback", second, "rolled_back_before", given_back)

large = {"idempotency_key": "bet-2", "amount": 1000, "round_id": 7002, "game_id": ""}
declined = (402, '{"error":"insufficient balance","balance":100.00}')
player.call("declined", "/bet/debit", large, "declined", declined)
player.call("declined-again", "/bet/debit", large, "duplicate", declined)
nothing = {"idempotency_key": "manual-rb-3", "original_transaction_id": "bet-2"}
player.call("declined-rollback", "/bet/rollback", nothing, "nothing_to_roll_back", player.moved("manual-rb-3", 0))

# The rollback overtakes its bet.
early = {"idempotency_key": "manual-rb-4", "original_transaction_id": "bet-3", "round_id": 7003}
player.call("rollback-first", "/bet/rollback", early, "voided", player.moved("manual-rb-4", 0))
late = {"idempotency_key": "bet-3", "amount": 5, "round_id": 7003, "game_id": ""}
player.call("late-bet", "/bet/debit", late, "late", (409, '{"error":"rolled back before it came"}'))

finish = {"idempotency_key": "finish-1", "round_id": 7001}
flip.event(
    "round-finish",
    finish,
    "finished",
    path="/round/finish",
    answer=(200, '{"transaction_id":"19flip/finish-1","status":"SUCCESS"}'),
)

nobody = {"idempotency_key": "bet-4", "player_id": "nobody", "amount": 1, "round_id": 7004, "game_id": ""}
flip.event("unknown-player", nobody, "unknown_player", path="/bet/debit", answer=(404, '{"error":"player not found"}'))
exponent = {"idempotency_key": "bet-5", "amount": Raw("1e2"), "round_id": 7004, "game_id": ""}
not_plain = (400, '{"error":"amount: not a plain decimal number such as 12.50"}')
player.call("bad-amount", "/bet/debit", exponent, "bad_parameters", not_plain)
forged = (401, '{"error":"bad signature"}')
player.call("forged", "/win/credit", win, "bad_signature", forged, forge={"amount": "2000.25"})
