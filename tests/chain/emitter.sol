// SPDX-License-Identifier: Apache-2.0
// Stand-ins for the exchange's contracts: each function emits the event of its own name, as Solidity encodes it.
pragma solidity ^0.8.30;

/// Logs of no declared shape: unknown events, known ones cut short.
contract Raw {
    function raw(bytes32[] calldata topics, bytes calldata data) external {
        bytes32[4] memory t;
        for (uint256 i = 0; i < topics.length; i++) t[i] = topics[i];
        bytes memory d = data;
        uint256 n = topics.length;
        assembly {
            let p := add(d, 32)
            let s := mload(d)
            switch n
            case 0 { log0(p, s) }
            case 1 { log1(p, s, mload(t)) }
            case 2 { log2(p, s, mload(t), mload(add(t, 32))) }
            case 3 { log3(p, s, mload(t), mload(add(t, 32)), mload(add(t, 64))) }
            default { log4(p, s, mload(t), mload(add(t, 32)), mload(add(t, 64)), mload(add(t, 96))) }
        }
    }
}

contract ExchangeV1 is Raw {
    event OrderFilled(bytes32 indexed orderHash, address indexed maker, address indexed taker, uint256 makerAssetId, uint256 takerAssetId, uint256 makerAmountFilled, uint256 takerAmountFilled, uint256 fee);
    event OrdersMatched(bytes32 indexed takerOrderHash, address indexed takerOrderMaker, uint256 makerAssetId, uint256 takerAssetId, uint256 makerAmountFilled, uint256 takerAmountFilled);
    event OrderCancelled(bytes32 indexed orderHash);
    event FeeCharged(address indexed receiver, uint256 tokenId, uint256 amount);
    event TokenRegistered(uint256 indexed token0, uint256 indexed token1, bytes32 indexed conditionId);

    function orderFilled(bytes32 a, address b, address c, uint256 d, uint256 e, uint256 f, uint256 g, uint256 h) external { emit OrderFilled(a, b, c, d, e, f, g, h); }
    function ordersMatched(bytes32 a, address b, uint256 c, uint256 d, uint256 e, uint256 f) external { emit OrdersMatched(a, b, c, d, e, f); }
    function orderCancelled(bytes32 a) external { emit OrderCancelled(a); }
    function feeCharged(address a, uint256 b, uint256 c) external { emit FeeCharged(a, b, c); }
    function tokenRegistered(uint256 a, uint256 b, bytes32 c) external { emit TokenRegistered(a, b, c); }
}

contract ExchangeV2 is Raw {
    event OrderFilled(bytes32 indexed orderHash, address indexed maker, address indexed taker, uint8 side, uint256 tokenId, uint256 makerAmountFilled, uint256 takerAmountFilled, uint256 fee, bytes32 builder, bytes32 metadata);
    event OrdersMatched(bytes32 indexed takerOrderHash, address indexed takerOrderMaker, uint8 side, uint256 tokenId, uint256 makerAmountFilled, uint256 takerAmountFilled);
    event FeeCharged(address indexed receiver, uint256 amount);

    function orderFilled(bytes32 a, address b, address c, uint8 d, uint256 e, uint256 f, uint256 g, uint256 h, bytes32 i, bytes32 j) external { emit OrderFilled(a, b, c, d, e, f, g, h, i, j); }
    function ordersMatched(bytes32 a, address b, uint8 c, uint256 d, uint256 e, uint256 f) external { emit OrdersMatched(a, b, c, d, e, f); }
    function feeCharged(address a, uint256 b) external { emit FeeCharged(a, b); }
}

contract ConditionalTokens is Raw {
    event ConditionPreparation(bytes32 indexed conditionId, address indexed oracle, bytes32 indexed questionId, uint256 outcomeSlotCount);
    event ConditionResolution(bytes32 indexed conditionId, address indexed oracle, bytes32 indexed questionId, uint256 outcomeSlotCount, uint256[] payoutNumerators);
    event PositionSplit(address indexed stakeholder, address collateralToken, bytes32 indexed parentCollectionId, bytes32 indexed conditionId, uint256[] partition, uint256 amount);
    event PositionsMerge(address indexed stakeholder, address collateralToken, bytes32 indexed parentCollectionId, bytes32 indexed conditionId, uint256[] partition, uint256 amount);
    event PayoutRedemption(address indexed redeemer, address indexed collateralToken, bytes32 indexed parentCollectionId, bytes32 conditionId, uint256[] indexSets, uint256 payout);
    event TransferSingle(address indexed operator, address indexed from, address indexed to, uint256 id, uint256 value);
    event TransferBatch(address indexed operator, address indexed from, address indexed to, uint256[] ids, uint256[] values);

    function conditionPreparation(bytes32 a, address b, bytes32 c, uint256 d) external { emit ConditionPreparation(a, b, c, d); }
    function conditionResolution(bytes32 a, address b, bytes32 c, uint256 d, uint256[] calldata e) external { emit ConditionResolution(a, b, c, d, e); }
    function positionSplit(address a, address b, bytes32 c, bytes32 d, uint256[] calldata e, uint256 f) external { emit PositionSplit(a, b, c, d, e, f); }
    function positionsMerge(address a, address b, bytes32 c, bytes32 d, uint256[] calldata e, uint256 f) external { emit PositionsMerge(a, b, c, d, e, f); }
    function payoutRedemption(address a, address b, bytes32 c, bytes32 d, uint256[] calldata e, uint256 f) external { emit PayoutRedemption(a, b, c, d, e, f); }
    function transferSingle(address a, address b, address c, uint256 d, uint256 e) external { emit TransferSingle(a, b, c, d, e); }
    function transferBatch(address a, address b, address c, uint256[] calldata d, uint256[] calldata e) external { emit TransferBatch(a, b, c, d, e); }
}

contract NegRiskAdapter is Raw {
    event PositionSplit(address indexed stakeholder, bytes32 indexed conditionId, uint256 amount);
    event PositionsMerge(address indexed stakeholder, bytes32 indexed conditionId, uint256 amount);
    event PositionsConverted(address indexed stakeholder, bytes32 indexed marketId, uint256 indexed indexSet, uint256 amount);
    event PayoutRedemption(address indexed redeemer, bytes32 indexed conditionId, uint256[] amounts, uint256 payout);
    event MarketPrepared(bytes32 indexed marketId, address indexed oracle, uint256 feeBips, bytes data);
    event QuestionPrepared(bytes32 indexed marketId, bytes32 indexed questionId, uint256 index, bytes data);
    event OutcomeReported(bytes32 indexed marketId, bytes32 indexed questionId, bool outcome);

    function positionSplit(address a, bytes32 b, uint256 c) external { emit PositionSplit(a, b, c); }
    function positionsMerge(address a, bytes32 b, uint256 c) external { emit PositionsMerge(a, b, c); }
    function positionsConverted(address a, bytes32 b, uint256 c, uint256 d) external { emit PositionsConverted(a, b, c, d); }
    function payoutRedemption(address a, bytes32 b, uint256[] calldata c, uint256 d) external { emit PayoutRedemption(a, b, c, d); }
    function marketPrepared(bytes32 a, address b, uint256 c, bytes calldata d) external { emit MarketPrepared(a, b, c, d); }
    function questionPrepared(bytes32 a, bytes32 b, uint256 c, bytes calldata d) external { emit QuestionPrepared(a, b, c, d); }
    function outcomeReported(bytes32 a, bytes32 b, bool c) external { emit OutcomeReported(a, b, c); }
}

contract Collateral is Raw {
    event Transfer(address indexed from, address indexed to, uint256 value);

    function transfer(address a, address b, uint256 c) external { emit Transfer(a, b, c); }
}

/// One transaction that calls many contracts, one after the other.
contract Caller {
    function run(address[] calldata targets, bytes[] calldata calls) external {
        for (uint256 i = 0; i < targets.length; i++) {
            (bool ok, ) = targets[i].call(calls[i]);
            require(ok);
        }
    }
}
