"""The operations of the service, a module for each tag of the OpenAPI document.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

from presage_client._operations.charts import ChartsOperations
from presage_client._operations.debug import DebugOperations
from presage_client._operations.equivalents import EquivalentsOperations
from presage_client._operations.exports import ExportsOperations
from presage_client._operations.keys import KeysOperations
from presage_client._operations.markets import MarketsOperations
from presage_client._operations.positions import PositionsOperations
from presage_client._operations.prices import PricesOperations
from presage_client._operations.service import ServiceOperations
from presage_client._operations.signals import SignalsOperations
from presage_client._operations.taxonomy import TaxonomyOperations
from presage_client._operations.trades import TradesOperations
from presage_client._operations.wallets import WalletsOperations
from presage_client._operations.webhooks import WebhooksOperations


class Operations(
    KeysOperations,
    ServiceOperations,
    MarketsOperations,
    PricesOperations,
    TradesOperations,
    SignalsOperations,
    TaxonomyOperations,
    EquivalentsOperations,
    PositionsOperations,
    ChartsOperations,
    WalletsOperations,
    WebhooksOperations,
    ExportsOperations,
    DebugOperations,
):
    """One method for each operation of the OpenAPI document."""
