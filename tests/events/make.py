"""Writes the networks' events in events/<contract>/ and what each must be answered, <contract>.tsv:
`python3 tests/events/make.py`.

`--check` writes nothing, names the files that differ from what would be written, and exits 1 if there are any.

It must never write or check the events of `standard`, which are made by hand, and never read the presets.
"""

import importlib.util
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import wire

# The order of the files is the playing order.
for module in ("global_networks", "walls", "wallets"):
    if importlib.util.find_spec(module):
        importlib.import_module(module)


def main(arguments):
    if arguments == ["--check"]:
        wrong = wire.differing()
        for name in wrong:
            print(name)
        return 1 if wrong else 0
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    print(f"{wire.write()} files written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
