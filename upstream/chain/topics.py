"""Events by topic 0, the keccak of their signature; the tests recompute each of them."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from upstream.chain.contracts import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping


class EventType(Enum):
    """The meaning of an event."""

    FILL_V1 = auto()
    FILL_V2 = auto()
    MATCHED = auto()
    TRANSFER = auto()
    TRANSFERS = auto()
    SPLIT = auto()
    MERGE = auto()
    REDEMPTION = auto()
    PREPARATION = auto()
    RESOLUTION = auto()
    ADAPTER_SPLIT = auto()
    ADAPTER_MERGE = auto()
    ADAPTER_REDEMPTION = auto()
    CONVERSION = auto()
    NOTHING = auto()
    """Known but unused: counted as ignored."""


class EventSignature(NamedTuple):
    """One event logged by contracts of one kind."""

    event_type: EventType
    kind: Kind
    signature: str
    topic0: str


_V1, _V2 = Kind.EXCHANGE_V1, Kind.EXCHANGE_V2
_TOKENS, _ADAPTER = Kind.CONDITIONAL_TOKENS, Kind.NEG_RISK_ADAPTER

EVENTS = (
    EventSignature(
        EventType.FILL_V1,
        _V1,
        "OrderFilled(bytes32,address,address,uint256,uint256,uint256,uint256,uint256)",
        "0xd0a08e8c493f9c94f29311604c9de1b4e8c8d4c06bd0c789af57f2d65bfec0f6",
    ),
    EventSignature(
        EventType.MATCHED,
        _V1,
        "OrdersMatched(bytes32,address,uint256,uint256,uint256,uint256)",
        "0x63bf4d16b7fa898ef4c4b2b6d90fd201e9c56313b65638af6088d149d2ce956c",
    ),
    EventSignature(
        EventType.NOTHING,
        _V1,
        "OrderCancelled(bytes32)",
        "0x5152abf959f6564662358c2e52b702259b78bac5ee7842a0f01937e670efcc7d",
    ),
    EventSignature(
        EventType.NOTHING,
        _V1,
        "FeeCharged(address,uint256,uint256)",
        "0xacffcc86834d0f1a64b0d5a675798deed6ff0bcfc2231edd3480e7288dba7ff4",
    ),
    EventSignature(
        EventType.NOTHING,
        _V1,
        "TokenRegistered(uint256,uint256,bytes32)",
        "0xbc9a2432e8aeb48327246cddd6e872ef452812b4243c04e6bfb786a2cd8faf0d",
    ),
    EventSignature(
        EventType.FILL_V2,
        _V2,
        "OrderFilled(bytes32,address,address,uint8,uint256,uint256,uint256,uint256,bytes32,bytes32)",
        "0xd543adfd945773f1a62f74f0ee55a5e3b9b1a28262980ba90b1a89f2ea84d8ee",
    ),
    EventSignature(
        EventType.MATCHED,
        _V2,
        "OrdersMatched(bytes32,address,uint8,uint256,uint256,uint256)",
        "0x174b3811690657c217184f89418266767c87e4805d09680c39fc9c031c0cab7c",
    ),
    EventSignature(
        EventType.NOTHING,
        _V2,
        "FeeCharged(address,uint256)",
        "0x55bb3cade9d43b798a4fe5ffdd05024b2d7870df53920673bfc7e68047cd0ab1",
    ),
    EventSignature(
        EventType.PREPARATION,
        _TOKENS,
        "ConditionPreparation(bytes32,address,bytes32,uint256)",
        "0xab3760c3bd2bb38b5bcf54dc79802ed67338b4cf29f3054ded67ed24661e4177",
    ),
    EventSignature(
        EventType.RESOLUTION,
        _TOKENS,
        "ConditionResolution(bytes32,address,bytes32,uint256,uint256[])",
        "0xb44d84d3289691f71497564b85d4233648d9dbae8cbdbb4329f301c3a0185894",
    ),
    EventSignature(
        EventType.SPLIT,
        _TOKENS,
        "PositionSplit(address,address,bytes32,bytes32,uint256[],uint256)",
        "0x2e6bb91f8cbcda0c93623c54d0403a43514fabc40084ec96b6d5379a74786298",
    ),
    EventSignature(
        EventType.MERGE,
        _TOKENS,
        "PositionsMerge(address,address,bytes32,bytes32,uint256[],uint256)",
        "0x6f13ca62553fcc2bcd2372180a43949c1e4cebba603901ede2f4e14f36b282ca",
    ),
    EventSignature(
        EventType.REDEMPTION,
        _TOKENS,
        "PayoutRedemption(address,address,bytes32,bytes32,uint256[],uint256)",
        "0x2682012a4a4f1973119f1c9b90745d1bd91fa2bab387344f044cb3586864d18d",
    ),
    EventSignature(
        EventType.TRANSFER,
        _TOKENS,
        "TransferSingle(address,address,address,uint256,uint256)",
        "0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62",
    ),
    EventSignature(
        EventType.TRANSFERS,
        _TOKENS,
        "TransferBatch(address,address,address,uint256[],uint256[])",
        "0x4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb",
    ),
    EventSignature(
        EventType.NOTHING,
        _TOKENS,
        "ApprovalForAll(address,address,bool)",
        "0x17307eab39ab6107e8899845ad3d59bd9653f200f220920489ca2b5937696c31",
    ),
    EventSignature(
        EventType.ADAPTER_SPLIT,
        _ADAPTER,
        "PositionSplit(address,bytes32,uint256)",
        "0xbbed930dbfb7907ae2d60ddf78345610214f26419a0128df39b6cc3d9e5df9b0",
    ),
    EventSignature(
        EventType.ADAPTER_MERGE,
        _ADAPTER,
        "PositionsMerge(address,bytes32,uint256)",
        "0xba33ac50d8894676597e6e35dc09cff59854708b642cd069d21eb9c7ca072a04",
    ),
    EventSignature(
        EventType.CONVERSION,
        _ADAPTER,
        "PositionsConverted(address,bytes32,uint256,uint256)",
        "0xb03d19dddbc72a87e735ff0ea3b57bef133ebe44e1894284916a84044deb367e",
    ),
    EventSignature(
        EventType.ADAPTER_REDEMPTION,
        _ADAPTER,
        "PayoutRedemption(address,bytes32,uint256[],uint256)",
        "0x9140a6a270ef945260c03894b3c6b3b2695e9d5101feef0ff24fec960cfd3224",
    ),
    EventSignature(
        EventType.NOTHING,
        _ADAPTER,
        "MarketPrepared(bytes32,address,uint256,bytes)",
        "0xf059ab16d1ca60e123eab60e3c02b68faf060347c701a5d14885a8e1def7b3a8",
    ),
    EventSignature(
        EventType.NOTHING,
        _ADAPTER,
        "QuestionPrepared(bytes32,bytes32,uint256,bytes)",
        "0xaac410f87d423a922a7b226ac68f0c2eaf5bf6d15e644ac0758c7f96e2c253f7",
    ),
    EventSignature(
        EventType.NOTHING,
        _ADAPTER,
        "OutcomeReported(bytes32,bytes32,bool)",
        "0x9e9fa7fd355160bd4cd3f22d4333519354beff1f5689bde87f2c5e63d8d484b2",
    ),
)

BY_TOPIC: Mapping[str, EventSignature] = {event.topic0: event for event in EVENTS}
