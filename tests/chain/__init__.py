"""A real EVM node whose contracts emit what tests ask for, and a proxy that answers as bad nodes do.

    def test_a_fill_is_stored(chain, meddler):
        chain.emit(events.fill_v2(maker=events.wallet(1), shares=5_000_000, usd=2_600_000))
        chain.mine(3)
        chain.reorg(2, [[events.fill_v2()]])
        meddler.fail("too_many_results", methods={"eth_getLogs"})
        index(rpc=meddler.url)
        assert stored() == decoded(chain.logs())

The fixtures are in `tests/conftest.py`: `anvil` (the node, one a session), `chain` (the driver, at genesis when the
test starts), `meddler` (one proxy before the node) and `meddlers` (`meddlers(2)`: several).

- `solidity` compiles `emitter.sol` with npm's solc; `abi` encodes calls; `contracts` says which contract stands where:
  the code lies at the addresses of the real ones, so that the default contracts of `upstream.chain` fit.
- `anvil` is the process, `driver` what a test does with it, `events` what contracts can say.
- `meddler` is the proxy, `refusals` the answers of bad nodes, `frozen` a node stuck on an old view of the chain.
- `scenario` draws and plays random histories by seed.
"""

from __future__ import annotations

from tests.chain.anvil import Anvil
from tests.chain.driver import Block, Chain
from tests.chain.meddler import Meddler

__all__ = ["Anvil", "Block", "Chain", "Meddler"]
