"""Addresses of the emitters: those of the exchange's own contracts on Polygon."""

from __future__ import annotations

CHAIN_ID = 137
CALLER = bytes.fromhex("00000000000000000000000000000000000ca11e")

# By name: the address, and the contract of emitter.sol deployed there.
CONTRACTS = {
    "exchange_v1": ("4bFb41d5B3570DeFd03C39a9A4D8dE6Bd8B8982E", "ExchangeV1"),
    "neg_risk_exchange_v1": ("C5d563A36AE78145C45a50134d48A1215220f80a", "ExchangeV1"),
    "exchange_v2": ("E111180000d2663C0091e4f400237545B87B996B", "ExchangeV2"),
    "neg_risk_exchange_v2": ("e2222d279d744050d28e00520010520000310F59", "ExchangeV2"),
    "exchange_v3": ("e3333700cA9d93003F00f0F71f8515005F6c00Aa", "Raw"),
    "conditional_tokens": ("4D97DCd97eC945f40cF65F87097ACe5EA0476045", "ConditionalTokens"),
    "neg_risk_adapter": ("d91E80cF2E7be2e162c6513ceD06f1dD0dA35296", "NegRiskAdapter"),
    "usdc_e": ("2791Bca1f2de4661ED88A30C99A7a9449Aa84174", "Collateral"),
    "pusd": ("C011a7E12a19f7B1f670d46F03B03f3342E82DFB", "Collateral"),
    "unknown": ("00000000000000000000000000000000DeaDBeef", "ExchangeV2"),  # of no interest to anyone
}


def address(name: str) -> bytes:
    """Return the address of a contract."""
    return bytes.fromhex(CONTRACTS[name][0])


def emitter(name: str) -> str:
    """Return the contract of emitter.sol deployed there."""
    return CONTRACTS[name][1]
