"""The operations of the service, a module for each tag of the OpenAPI document.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

from presage_client._async_operations.charts import AsyncChartsOperations
from presage_client._async_operations.debug import AsyncDebugOperations
from presage_client._async_operations.equivalents import AsyncEquivalentsOperations
from presage_client._async_operations.exports import AsyncExportsOperations
from presage_client._async_operations.keys import AsyncKeysOperations
from presage_client._async_operations.markets import AsyncMarketsOperations
from presage_client._async_operations.positions import AsyncPositionsOperations
from presage_client._async_operations.prices import AsyncPricesOperations
from presage_client._async_operations.service import AsyncServiceOperations
from presage_client._async_operations.signals import AsyncSignalsOperations
from presage_client._async_operations.taxonomy import AsyncTaxonomyOperations
from presage_client._async_operations.trades import AsyncTradesOperations
from presage_client._async_operations.wallets import AsyncWalletsOperations
from presage_client._async_operations.webhooks import AsyncWebhooksOperations


class AsyncOperations(
    AsyncKeysOperations,
    AsyncServiceOperations,
    AsyncMarketsOperations,
    AsyncPricesOperations,
    AsyncTradesOperations,
    AsyncSignalsOperations,
    AsyncTaxonomyOperations,
    AsyncEquivalentsOperations,
    AsyncPositionsOperations,
    AsyncChartsOperations,
    AsyncWalletsOperations,
    AsyncWebhooksOperations,
    AsyncExportsOperations,
    AsyncDebugOperations,
):
    """One method for each operation of the OpenAPI document."""
