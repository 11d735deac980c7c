"""Contracts to follow: configurable, as there were three generations in one year."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from pathlib import Path


class Kind(StrEnum):
    """The role of a contract."""

    EXCHANGE_V1 = "exchange_v1"
    EXCHANGE_V2 = "exchange_v2"
    EXCHANGE_V3 = "exchange_v3"
    """Its events' layout is not public: its logs are refused and counted, never guessed."""
    CONDITIONAL_TOKENS = "conditional_tokens"
    NEG_RISK_ADAPTER = "neg_risk_adapter"
    COLLATERAL_ADAPTER = "collateral_adapter"
    """Acts for users: its operations are attributed from the token transfers of the same transaction."""
    FEE_MODULE = "fee_module"
    """Refunds V1 fees in shares."""
    COLLATERAL = "collateral"
    """The collateral token; positions in any other are not the exchange's."""
    BURN = "burn"
    """Receives burnt tokens."""


FOLLOWED = {Kind.EXCHANGE_V1, Kind.EXCHANGE_V2, Kind.EXCHANGE_V3, Kind.CONDITIONAL_TOKENS, Kind.NEG_RISK_ADAPTER}
"""Kinds whose logs are requested; the others are only recognised."""


class Contract(NamedTuple):
    """One contract, with the name it is stored and served under."""

    name: str
    address: bytes
    kind: Kind


def contract(name: str, address: str, kind: str) -> Contract:
    """Return a contract from text; ValueError for an address of other than 20 bytes or an unknown kind."""
    raw = bytes.fromhex(address.removeprefix("0x"))
    if len(raw) != 20:
        raise ValueError(f"{name}: not an address: {address}")
    return Contract(name, raw, Kind(kind))


POLYGON = (
    contract("CTF Exchange V2", "0xE111180000d2663C0091e4f400237545B87B996B", Kind.EXCHANGE_V2),
    contract("NegRisk CTF Exchange V2", "0xe2222d279d744050d28e00520010520000310F59", Kind.EXCHANGE_V2),
    contract("NegRisk CTF Exchange V2 B", "0xe2222d002000ba0053cef3375333610f64600036", Kind.EXCHANGE_V2),
    contract("CTF Exchange V1", "0x4bFb41d5B3570DeFd03C39a9A4D8dE6Bd8B8982E", Kind.EXCHANGE_V1),
    contract("NegRisk CTF Exchange V1", "0xC5d563A36AE78145C45a50134d48A1215220f80a", Kind.EXCHANGE_V1),
    contract("Exchange V3", "0xe3333700cA9d93003F00f0F71f8515005F6c00Aa", Kind.EXCHANGE_V3),
    contract("Conditional Tokens", "0x4D97DCd97eC945f40cF65F87097ACe5EA0476045", Kind.CONDITIONAL_TOKENS),
    contract("NegRisk Adapter", "0xd91E80cF2E7be2e162c6513ceD06f1dD0dA35296", Kind.NEG_RISK_ADAPTER),
    contract("CTF collateral adapter", "0xADa100874d00e3331D00F2007a9c336a65009718", Kind.COLLATERAL_ADAPTER),
    contract("CTF collateral adapter B", "0xAdA100Db00Ca00073811820692005400218FcE1f", Kind.COLLATERAL_ADAPTER),
    contract("NegRisk collateral adapter", "0xAdA200001000ef00D07553cEE7006808F895c6F1", Kind.COLLATERAL_ADAPTER),
    contract("NegRisk collateral adapter B", "0xadA2005600Dec949baf300f4C6120000bDB6eAab", Kind.COLLATERAL_ADAPTER),
    contract("Fee module", "0xE3f18aCc55091e2c48d883fc8C8413319d4Ab7b0", Kind.FEE_MODULE),
    contract("NegRisk fee module", "0xB768891e3130F6dF18214Ac804d4DB76c2C37730", Kind.FEE_MODULE),
    contract("NegRisk fee module A", "0x78769D50Be1763ed1CA0D5E878D93f05aabff29e", Kind.FEE_MODULE),
    contract("No-token burn address", "0xA5Ef39C3D3e10d0B270233af41CaC69796B12966", Kind.BURN),
    contract("USDC.e", "0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174", Kind.COLLATERAL),
    contract("pUSD", "0xC011a7E12a19f7B1f670d46F03B03f3342E82DFB", Kind.COLLATERAL),
    contract("NegRisk wrapped collateral", "0x3A3BD7bb9528E159577F7C2e685CC81A765002E2", Kind.COLLATERAL),
)
"""Polygon PoS, chain id 137."""


class _Stated(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    address: str
    kind: str


_stated = msgspec.json.Decoder(list[_Stated])


def load(path: Path | None) -> tuple[Contract, ...]:
    """Load contracts from a JSON file, [{"name": …, "address": "0x…", "kind": "exchange_v2"}, …]; None: `POLYGON`."""
    if path is None:
        return POLYGON
    loaded = tuple(contract(each.name, each.address, each.kind) for each in _stated.decode(path.read_bytes()))
    if len({each.address for each in loaded}) != len(loaded) or len({each.name for each in loaded}) != len(loaded):
        raise ValueError(f"{path}: duplicate name or address")
    if not any(each.kind in FOLLOWED for each in loaded):
        raise ValueError(f"{path}: names no contract to follow")
    return loaded


def followed(contracts: tuple[Contract, ...]) -> list[bytes]:
    """Return the addresses whose logs are requested, with all their topics."""
    return [each.address for each in contracts if each.kind in FOLLOWED]
