"""A typed client of the service, for threads and for event loops.

a plan says     which requests, what their answers mean        plans.py, call.py: nothing is sent there
a client sends  and tries again, with the same ids             blocking.py, asynchronous.py; retries.py says when
a batcher       gathers rewards and sends them together        batcher.py
"""

from coterie.service.client.asynchronous import AsyncClient
from coterie.service.client.batching.async_batcher import AsyncBatcher
from coterie.service.client.batching.batcher import Batcher
from coterie.service.client.blocking import Client
from coterie.service.client.sending.failures import RequestRefusedError, ServiceError
from coterie.service.client.sending.retries import Retries
from coterie.service.envelopes import EventReward
from coterie.service.records import Arm, DecisionRequest, Edge, ExperimentSettings, SettingsChange, User

__all__ = [
    "Arm",
    "AsyncBatcher",
    "AsyncClient",
    "Batcher",
    "Client",
    "DecisionRequest",
    "Edge",
    "EventReward",
    "ExperimentSettings",
    "RequestRefusedError",
    "Retries",
    "ServiceError",
    "SettingsChange",
    "User",
]
