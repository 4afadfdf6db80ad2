"""How large a whole number may be, in Python, on the command line and in files alike; nothing slow is imported here.

Larger ones are slips of the keyboard. Refused where they are given, they reach no array, file or message too small for
them.
"""

from __future__ import annotations

#: Clients, rounds, features, arms and whatever else is counted.
MOST_COUNT = 10**8
#: Interactions of a run, which has arrays with an entry for each.
MOST_STEPS = 10**12
#: Seeds are kept in files of results, as whole numbers of 64 bits with a sign.
MOST_SEED = 2**63 - 1
#: Seeds of one comparison; each is a run of every algorithm.
MOST_SEEDS = 10**6
#: Runs at a time, a process each.
MOST_JOBS = 1000
#: Bytes of one message or body.
MOST_AT_ONCE = 2**31 - 1
#: Days for which a certificate is good: a hundred years.
MOST_DAYS = 36_525
