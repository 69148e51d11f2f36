"""How often SIGRTMIN, blocked since the start, comes: until none has come for half a second."""

from __future__ import annotations

import signal

n_signals = 0
while signal.sigtimedwait({signal.SIGRTMIN}, 0.5 if n_signals else 20):
    n_signals += 1
print(n_signals)
