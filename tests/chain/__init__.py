"""A real EVM node whose contracts emit given events, and a proxy that responds as faulty nodes do.

    def test_a_fill_is_stored(chain, faulty_rpc):
        chain.emit(events.fill_v2(maker=events.wallet(1), shares=5_000_000, usd=2_600_000))
        chain.mine(3)
        chain.reorg(2, [[events.fill_v2()]])
        faulty_rpc.fail("too_many_results", methods={"eth_getLogs"})
        index(rpc=faulty_rpc.url)
        assert stored() == decoded(chain.logs())

The fixtures are in `tests/conftest.py`: `anvil` (the node, one a session), `chain` (the driver, at genesis when the
test starts), `faulty_rpc` (one proxy before the node) and `faulty_rpcs` (`faulty_rpcs(2)`: several).

- `solidity` compiles `emitter.sol` with npm's solc; `abi` encodes calls; `contracts` maps addresses to emitters:
  the code is at the addresses of the real contracts, so that the default contracts of `upstream.chain` fit.
- `anvil` is the process, `driver` mines and reorganises, `events` are the contracts' events.
- `faulty_rpc` is the proxy, `refusals` the errors of faulty nodes, `frozen` a node stuck on an old view of the chain.
- `scenario` generates and plays random histories by seed.
"""

from __future__ import annotations

from tests.chain.anvil import Anvil
from tests.chain.driver import Block, Chain
from tests.chain.faulty_rpc import FaultyRpc

__all__ = ["Anvil", "Block", "Chain", "FaultyRpc"]
