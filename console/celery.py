"""Celery, as a nudge only (L9): it tells a worker that a task row waits. What is true stands in the database, and
the sweep nudges again whatever was lost here."""

import os

from celery import Celery

from console.data import redis_url


def broker_url(url: str) -> str:
    """The broker's form of the fan-out's URL: kombu calls a unix socket `redis+socket`."""
    return url.replace("unix://", "redis+socket://", 1) if url.startswith("unix://") else url


os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

app = Celery("console")
app.conf.update(
    broker_url=broker_url(redis_url()),
    # A nudge is worth less than a writer's time: one try, then the sweep does it.
    task_publish_retry=False,
    broker_transport_options={
        "socket_timeout": 5.0,  # longer than the worker's own polls of 1 s
        "socket_connect_timeout": 1.0,
        # The connection too is tried once: kombu's own rests would cost a writer eight seconds.
        "max_retries": 0,
        "interval_start": 0,
        # Nudges that a killed worker had fetched come back after this, in seconds; the sweep is faster.
        "visibility_timeout": 60,
    },
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,  # Valkey may come back at any time
    task_acks_late=False,
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
    worker_hijack_root_logger=False,  # logging is the settings' to say
    worker_cancel_long_running_tasks_on_connection_loss=False,
    task_serializer="json",
    accept_content=["json"],
    enable_utc=True,
)
app.autodiscover_tasks()
