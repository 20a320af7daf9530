"""What running an attack on a translation model needs, beside what every attack needs."""

from __future__ import annotations

from unfooled.core.oracle import Oracle
from unfooled.core.victim import Victim
from unfooled.translation.oracles import WritingOracle
from unfooled.translation.victim import Translator


class Translation:
    """Found by the core under the name of the task; see `core.victim.task_of`."""

    def oracle(self, victim: Victim) -> Oracle:
        assert isinstance(victim, Translator)
        return WritingOracle(victim)


TASK = Translation()
